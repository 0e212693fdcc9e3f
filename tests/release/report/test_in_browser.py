"""The page as it is seen: in Chromium, wide and narrow, light and dark, on paper, by keyboard."""

import dataclasses

import pytest
from chromium import LEAST_CONTRAST, chromium, opened
from playwright.sync_api import expect
from releases import COLOURED, PICTURES, TABLE, generated, not_private, release

from limbeck.data.schema import Schema
from limbeck.release.bundle import Generated
from limbeck.release.report.render import render
from limbeck.release.report.scores import Scores, Shown

pytestmark = pytest.mark.browser

LONG = "an_unbroken_name_that_is_much_longer_than_any_telephone_is_wide_" * 2
AWKWARD = Schema.from_dict(
    {
        "label": {"name": LONG, "classes": [LONG, "<script>alert(1)</script>"]},
        "columns": {
            f"{LONG}{n}": {"kind": "categorical", "values": [f"{LONG}1", f"{LONG}2"]}
            for n in range(30)
        }
        | {"<script>alert(2)</script>": {"kind": "numeric", "minimum": -1e300, "maximum": 1e7}},
    }
)
AWKWARD_PICTURES = dataclasses.replace(PICTURES, classes=(LONG, "<img src=x>"), label=LONG)
SCORES = Scores(LONG, (Shown("krr", "accuracy", 0.8123), Shown(LONG, LONG, 0.9)))

PAGES = {
    "table": (release(TABLE, 25), None),
    "pictures": (release(PICTURES, 36), None),
    "coloured": (release(COLOURED, 4), None),
    "generated": (generated(TABLE, 25), SCORES),
    "generated-pictures": (generated(PICTURES, 36), None),
    "scores": (release(TABLE, 6), SCORES),
    "not-private": (not_private(PICTURES, 6), None),
    "seeded": (release(TABLE, 6, seeded=True), None),
    "awkward": (release(AWKWARD, 25, settings={LONG: LONG}), SCORES),
    "awkward-pictures": (release(AWKWARD_PICTURES, 25), None),
}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The pages by name, as files."""
    folder = tmp_path_factory.mktemp("pages")
    for name, (bundle, scores) in PAGES.items():
        (folder / f"{name}.html").write_text(render(bundle, scores), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


@pytest.fixture(params=PAGES)
def path(request, written):
    return written[request.param]


def test_it_asks_for_nothing_and_nothing_is_complained_of(browser, path):
    with opened(browser, path) as seen:
        seen.page.wait_for_load_state("networkidle")
        asked = [url for url in seen.requests if not url.startswith("data:")]
        assert asked == [path.as_uri()]
        assert seen.complaints == []


def test_complaints_and_requests_would_be_noticed(browser, tmp_path):
    """The test above can fail."""
    bad = "<img src='http://localhost:9/x.png'><script>alert('boo'); x()</script>"
    (tmp_path / "bad.html").write_text(bad)
    with opened(browser, tmp_path / "bad.html") as seen:
        seen.page.wait_for_load_state("networkidle")
        assert len(seen.requests) == 2
        assert "boo" in seen.complaints
        assert "x is not defined" in seen.complaints


def test_an_injected_script_would_not_run(browser, written, tmp_path):
    """Escaping is the first wall; the page's own policy is the second."""
    evil = (
        written["table"].read_text().replace("</main>", "<script>document.title = 'evil'</script>")
    )
    (tmp_path / "evil.html").write_text(evil)
    with opened(browser, tmp_path / "evil.html") as seen:
        assert seen.page.title() != "evil"
        assert "Content Security Policy" in seen.complaints[0]


def sections_of(bundle, scores):
    points = "The records" if isinstance(bundle, Generated) else "The points"
    sections = ["Privacy", "Where the budget went", points, "How to load them"]
    if scores:
        sections.append("Scores, computed on private data")
    return [*sections, "Method and settings"]


def test_the_sections_are_there_in_order(browser, path):
    with opened(browser, path) as seen:
        title = "Generated data" if isinstance(PAGES[path.stem][0], Generated) else "Distilled data"
        assert seen.page.locator("h1").all_inner_texts() == [title]
        sections = seen.page.locator("h2").all_inner_texts()
        assert sections == sections_of(*PAGES[path.stem])
        assert seen.ask("document.documentElement.lang") == "en"


def test_pictures_load_and_are_named(browser, written):
    with opened(browser, written["pictures"]) as seen:
        images = seen.ask("[...document.images].map((i) => [i.alt, i.naturalWidth, i.complete])")
        assert len(images) == 30
        assert all(alt.startswith("class ") for alt, _, _ in images)
        assert all(width == 5 and complete for _, width, complete in images)
        assert seen.page.get_by_role("button", name="class 7, point 2 of 12").is_visible()


@pytest.mark.parametrize("width", [320, 380, 1280])
def test_the_page_never_scrolls_sideways(browser, path, width):
    with opened(browser, path, width) as seen:
        assert seen.ask("document.documentElement.scrollWidth") <= width
        # Nothing but what lies in a box that scrolls by itself reaches out of the window.
        out = seen.ask(
            """(width) => [...document.querySelectorAll("main *, footer *")].filter(
            (e) => e.getBoundingClientRect().right > width && !e.closest(".scroll, pre"))
            .map((e) => e.outerHTML)""",
            width,
        )
        assert out == []


def test_what_is_wide_scrolls_in_its_own_box_and_by_keyboard(browser, written):
    with opened(browser, written["table"], 380) as seen:
        box = seen.page.get_by_role("region", name="Rows")
        assert box.evaluate("(e) => e.scrollWidth > e.clientWidth")
        box.focus()
        seen.page.keyboard.press("ArrowRight")
        seen.page.wait_for_timeout(300)
        assert box.evaluate("(e) => e.scrollLeft") > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough(browser, path, scheme):
    with opened(browser, path, color_scheme=scheme) as seen:
        count, least, where = seen.ask(LEAST_CONTRAST)
        assert count > 50
        assert least >= 4.5, where


def test_dark_is_dark(browser, written):
    for scheme, bright in (("light", True), ("dark", False)):
        with opened(browser, written["table"], color_scheme=scheme) as seen:
            colour = seen.ask("getComputedStyle(document.body).backgroundColor")
            assert (int(colour.split("(")[1].split(",")[0]) > 127) is bright


@pytest.mark.parametrize("name", ["not-private", "seeded", "scores"])
@pytest.mark.parametrize("width", [380, 1280])
def test_a_warning_is_seen_without_scrolling(browser, written, name, width):
    with opened(browser, written[name], width) as seen:
        first = seen.page.locator("main > *").first
        box = first.bounding_box()
        assert first.get_attribute("class") == "warning"
        assert box["y"] + box["height"] < 400
        assert first.evaluate("(e) => getComputedStyle(e).backgroundColor") == "rgb(156, 17, 17)"


# Enlarging


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1280])
def test_a_picture_is_enlarged_by_keyboard_and_escape_closes_it(browser, written, width, scheme):
    with opened(browser, written["pictures"], width, color_scheme=scheme) as seen:
        page = seen.page
        page.get_by_role("button", name="class 3, point 2 of 12").focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="class 3, point 2 of 12")
        assert dialog.is_visible()
        large = dialog.get_by_role("img").bounding_box()
        assert large["width"] > 200
        assert large["x"] >= 0
        assert large["x"] + large["width"] <= width
        assert "3 (0.82), 7 (0.09), 9 (0.09)" in dialog.inner_text()
        assert seen.ask("document.documentElement.scrollWidth") <= width
        assert seen.ask(LEAST_CONTRAST)[1] >= 4.5
        page.keyboard.press("Escape")
        assert not dialog.is_visible()
        assert seen.ask("document.activeElement.querySelector('img').alt").endswith("2 of 12")


def test_a_generated_picture_has_no_weights_to_tell(browser, written):
    with opened(browser, written["generated-pictures"]) as seen:
        seen.page.get_by_role("button", name="class 3, record 2 of 12").click()
        dialog = seen.page.get_by_role("dialog", name="class 3, record 2 of 12")
        assert " ".join(dialog.inner_text().split()) == "Class 3, record 2 of 12 Close"


def test_a_click_enlarges_and_a_click_beside_or_on_close_closes(browser, written):
    with opened(browser, written["coloured"]) as seen:
        dialog = seen.page.locator("dialog")
        for closing in (
            lambda: seen.page.mouse.click(5, 5),
            dialog.get_by_role("button", name="Close").click,
        ):
            seen.page.locator("button.tile").nth(1).click()
            assert dialog.is_visible()
            assert dialog.get_by_role("img").evaluate("(i) => i.naturalWidth") == 7
            closing()
            assert not dialog.is_visible()


def test_enlarged_pixels_stay_crisp(browser, written):
    with opened(browser, written["pictures"]) as seen:
        style = "(i) => getComputedStyle(i).imageRendering"
        assert seen.page.locator("img").first.evaluate(style) == "pixelated"


# Copying


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_lines_and_statement_are_copied(browser, written, has_clipboard):
    allowed = ["clipboard-read", "clipboard-write"]
    with opened(browser, written["table"], permissions=allowed) as seen:
        if not has_clipboard:  # an old browser, or one that does not trust files
            seen.ask("navigator.clipboard.writeText = undefined")
        said = seen.page.get_by_role("status")
        for button, source in (
            ("Copy the lines for pandas", "#lines-pandas"),
            ("Copy the statement", "#statement"),
        ):
            seen.page.get_by_role("button", name=button).click()
            expect(said).to_contain_text("Copied the ")
            copied = seen.ask("navigator.clipboard.readText()")
            assert copied.split() == seen.page.locator(source).inner_text().split()
            expect(said).to_be_empty()


# Without a script, and on paper


def test_without_scripts_everything_is_still_readable(browser, written):
    with opened(browser, written["pictures"], java_script_enabled=False) as seen:
        assert seen.page.get_by_text("differentially private").is_visible()
        assert seen.page.locator("button.tile img").first.is_visible()
        assert not seen.page.locator("button.copy").first.is_visible()
        assert not seen.page.locator("dialog").is_visible()


def test_paper_is_light_and_nothing_on_it_is_cut_off(browser, path):
    with opened(browser, path, 660, color_scheme="dark") as seen:  # A4 without its margins
        seen.page.emulate_media(media="print")
        assert seen.ask(LEAST_CONTRAST)[1] >= 4.5
        assert seen.ask("getComputedStyle(document.body).color") == "rgb(30, 35, 39)"
        assert not seen.page.locator("button.copy").first.is_visible()
        cut = seen.ask(
            """() => [...document.querySelectorAll(".scroll, pre, main")]
            .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.outerHTML)"""
        )
        assert cut == []
