"""The page: from the bundle alone, complete in itself, warnings first, and everything escaped."""

import base64
import dataclasses
import html
import io
import itertools
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from releases import EVENTS, PICTURES, TABLE, generated, not_private, release, replacing

from limbeck.data.schema import Schema
from limbeck.privacy.ledger import Entry
from limbeck.release.bundle import Generated
from limbeck.release.report import budget, columns
from limbeck.release.report.images import MOST_PER_CLASS
from limbeck.release.report.render import render
from limbeck.release.report.scores import Scores, Shown

SCORES = Scores("patients_test.csv", (Shown("krr", "accuracy", 0.8123), Shown("krr", "auc", 0.9)))
VOID = {"meta", "link", "br", "img", "rect"}  # <rect/> closes itself, and <rect> has a title


class Page(HTMLParser):
    """The elements of a page, as (tag, attributes), and its text; tags must close in order."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(written)
        assert not self.open
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID - {"rect"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def order(page, *phrases):
    """Whether the phrases come one after another."""
    places = [page.text.index(phrase) for phrase in phrases]
    return places == sorted(places)


# Complete in itself


def test_nothing_is_loaded_from_anywhere(bundle):
    page = Page(render(bundle, SCORES))
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster", "style"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
    assert {"iframe", "object", "embed", "base"}.isdisjoint(tag for tag, _ in page.elements)
    written = render(bundle)
    assert not re.search(r"https?://|url\(|@import", written)


def test_the_browser_is_told_to_run_and_load_nothing_else(bundle):
    written = render(bundle)
    (policy,) = [m["content"] for m in Page(written).all("meta") if "http-equiv" in m]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy
    assert len(re.findall("<script>", written)) == 1


def test_the_same_bundle_gives_the_same_page(bundle):
    assert render(bundle) == render(bundle)


def test_rendering_needs_no_jax():
    code = (
        "import sys; sys.path.insert(0, 'tests/release/report'); import releases;"
        "from limbeck.release.report.render import render;"
        "[render(make(s, 6)) for s in (releases.TABLE, releases.PICTURES)"
        " for make in (releases.release, releases.generated)];"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    modules = set(loaded.stdout.split())
    assert "jinja2" in modules
    assert not {"jax", "matplotlib", "sklearn"} & modules


def test_headings_are_in_order_and_names_are_unique(bundle):
    page = Page(render(bundle, SCORES))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in page.elements:
        assert attributes.get("aria-labelledby", names[0]) in names
        assert attributes.get("data-copies", names[0]) in names


# What is promised


def test_the_statement_comes_first_and_word_for_word(bundle):
    page = Page(render(bundle))
    title, noun = (
        ("Generated", "records") if isinstance(bundle, Generated) else ("Distilled", "points")
    )
    assert page.text.startswith(f"{title} data, {len(bundle.points)} {noun} {title} data Privacy")
    assert order(page, bundle.statement(), "What was assumed to be public", "Where the budget went")


def test_what_was_assumed_public_depends_on_the_schema_and_the_neighbours():
    assert "The number of rows: 1797." in Page(render(release(PICTURES, 6))).text
    private = Page(render(release(TABLE, 6))).text
    assert "The number of rows is protected too." in private
    assert not re.search(r"The number of rows[.:]", private)
    assert "The number of rows." in Page(render(replacing(TABLE, 6))).text


@pytest.mark.parametrize(("epsilon", "factor"), [(0.99991, "2.72"), (0.1, "1.11"), (3.0, "20.09")])
def test_the_factor_in_plain_words_is_never_rounded_down(epsilon, factor):
    text = Page(render(release(TABLE, 6, epsilon=epsilon))).text
    assert f"a factor of at most {factor}, plus 0.00001." in text
    assert float(factor) >= np.exp(epsilon) > float(factor) - 0.01


def test_a_large_epsilon_is_not_made_to_look_small():
    assert "at most e to the power of 800," in Page(render(release(TABLE, 6, epsilon=800.0))).text


def test_a_release_as_it_should_be_has_no_warning(bundle):
    written = render(bundle)
    assert 'class="warning"' not in written
    assert "Warning" not in Page(written).text


DRAFTED = dataclasses.replace(TABLE, drafted=True)


@pytest.mark.parametrize(
    ("made", "phrase"),
    [
        (not_private(TABLE, 6), "NOT PRIVATE. These points were made without noise."),
        (release(TABLE, 6, seeded=True), "SEEDED: NOT FOR RELEASE."),
        (release(DRAFTED, 6), "WARNING: the schema (bounds, categories, classes) was drafted"),
    ],
)
def test_warnings_are_the_first_thing_on_the_page(made, phrase):
    written = render(made)
    body = written[written.index("<body>") :]
    assert re.match(r'<body>\s*<main>\s*<p class="warning" role="note">' + re.escape(phrase), body)
    assert "<title>Warning: " in written


@pytest.mark.parametrize("make", [release, generated])
@pytest.mark.parametrize("schema", [TABLE, PICTURES], ids=["table", "pictures"])
def test_what_is_not_private_claims_nothing(schema, make):
    text = Page(render(not_private(schema, 6, make))).text
    claims = ("differentially", "In plain words", "assumed to be public", "not records of")
    for claim in (*claims, "noisy", "covered"):
        assert claim not in text
    said = "These records were" if make is generated else "These points were"
    assert text.count(f"{said} made without noise") == 2  # the warning, and under Privacy
    assert "There is no privacy guarantee" in text


def test_the_statement_to_be_copied_holds_its_warnings():
    written = render(release(DRAFTED, 6))
    quoted = re.search('<blockquote id="statement">(.*?)</blockquote>', written, re.DOTALL)[1]
    assert quoted.index("WARNING: the schema") < quoted.index("differentially private")
    assert "Nothing else was read" not in written


# The budget


def test_shares_add_up_to_one_and_follow_the_noise():
    shares = budget.shares(EVENTS)
    assert sum(shares) == pytest.approx(1)
    assert shares[0] / shares[1] == pytest.approx((1 / 20**2) / (30 / 30**2))


def test_shares_are_those_that_were_planned():
    """Noise calibrated for shares of 1 to 0.25 has these shares."""
    from limbeck.privacy.accounting import calibrate
    from limbeck.privacy.budget import Budget, Measurement

    plan = [Measurement(purpose="a", draws=10), Measurement(purpose="b", share=0.25)]
    assert budget.shares(calibrate(plan, Budget(epsilon=1.0))) == pytest.approx(
        [0.8, 0.2], rel=1e-3
    )


def test_samples_count_by_the_square_of_their_probability():
    sampled = dataclasses.replace(EVENTS[1], sampling_probability=0.1, purpose="sampled")
    shares = budget.shares([EVENTS[1], sampled])
    assert shares[0] / shares[1] == pytest.approx(100)
    note = "hold to first order"
    assert note in render(release(TABLE, 6, events=(EVENTS[0], sampled)))
    assert note not in render(release(TABLE, 6, events=(sampled,)))
    assert note not in render(release(TABLE, 6))


def test_the_bar_is_full_and_said_in_words():
    page = Page(render(release(TABLE, 6)))
    (bar,) = [svg for svg in page.all("svg") if svg.get("class") == "shares"]
    assert bar["aria-label"] == "Shares of the noise budget: class counts 7.0%, gradient 93.0%"
    pieces = [r for r in page.all("rect") if r.get("height") == "10"]
    assert sum(float(piece["width"]) for piece in pieces) == pytest.approx(100, abs=0.01)
    assert float(pieces[1]["x"]) == pytest.approx(float(pieces[0]["width"]))


def test_a_tiny_share_is_not_called_nothing():
    rare = Entry(purpose="rare", draws=1, noise_multiplier=5000.0)
    assert "rare below 0.1%" in render(release(TABLE, 6, events=(*EVENTS, rare)))


# The points


def test_every_picture_is_there_with_its_words():
    made = release(PICTURES, 36)
    images = Page(render(made)).all("img")
    assert len(images) == 3 * MOST_PER_CLASS
    assert images[1]["alt"] == "class 3, point 2 of 12"
    assert "The first 30 of 36 are shown" in Page(render(made)).text
    kind, data = images[1]["src"].split(",")
    assert kind == "data:image/png;base64"
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    points = made.points[made.y_soft.argmax(axis=1) == 0][1].reshape(6, 5)
    expected = 255 * (points - points.min()) / np.ptp(points)
    np.testing.assert_allclose(shown, expected, atol=1)


def test_largest_weights_are_told_on_enlarging():
    tiles = [b for b in Page(render(release(PICTURES, 6))).all("button") if "data-weights" in b]
    assert tiles[0]["data-weights"] == "3 (0.82), 7 (0.09), 9 (0.09)"


def test_many_large_pictures_do_not_make_a_large_page():
    large = Schema.loads(
        f"[label]\nclasses = {list(range(12))}\n[image]\nheight = 128\nwidth = 128\nchannels = 3"
    )
    assert len(render(release(large, 48))) < 2_500_000
    mnist = Schema.loads(f"[label]\nclasses = {list(range(10))}\n[image]\nheight = 28\nwidth = 28")
    written = render(release(mnist, 100))
    assert written.count("<img") == 100
    assert len(written) < 300_000


@pytest.mark.parametrize("schema", [TABLE, PICTURES], ids=["table", "pictures"])
def test_generated_data_are_records_and_speak_of_no_kernel(schema):
    page = Page(render(generated(schema, 36)))
    assert order(page, "The records", "36 records made by dp-ntk , not records of anybody")
    assert order(page, "a sample of a model", "learned from noisy measurements", "counting people")
    for word in ("points", "kernel", "classifier", "weights", "Distilled"):
        assert word not in page.text


def test_generated_pictures_are_shown_without_weights():
    page = Page(render(generated(PICTURES, 36)))
    images = page.all("img")
    assert len(images) == 3 * MOST_PER_CLASS
    assert images[1]["alt"] == "class 3, record 2 of 12"
    assert order(page, "The first 30 of 36 are shown", "10 of 12 records")
    assert not [button for button in page.all("button") if "data-weights" in button]
    assert "1 record Class" in Page(render(generated(PICTURES, 3))).text.replace(",", "")


def test_generated_rows_end_with_the_label():
    made = generated(TABLE, 25)
    names = [cell.name for cell in columns.cells(made)]
    assert names == ["age", "dose", "visits", "smoker", "ward", "ill"]
    text = Page(render(made)).text
    assert "the last column is the label." in text
    assert "more columns are not shown" not in text
    for histogram in columns.histograms(made):
        assert sum(bar.count for bar in histogram.bars) == 25, histogram.name


def test_rows_are_in_the_units_of_the_schema():
    made = release(TABLE, 25)
    page, frame = Page(render(made)), made.to_frame()
    assert "The first 20 of 25 rows" in page.text
    cells = columns.cells(made)
    assert [cell.name for cell in cells] == list(frame.columns)
    assert cells[0].texts == [str(age) for age in frame["age"][:20]]
    assert cells[1].texts == [f"{dose:.6g}" for dose in frame["dose"][:20]]
    assert cells[-1].texts[0] == f"{frame['ill=yes'][0]:.3f}"


def test_histograms_count_every_point_across_the_declared_domain():
    made = release(TABLE, 25)
    found = {histogram.name: histogram for histogram in columns.histograms(made)}
    assert list(found) == ["ill", "age", "dose", "visits", "smoker", "ward"]
    for histogram in found.values():
        assert sum(bar.count for bar in histogram.bars) == 25, histogram.name
    assert [bar.label for bar in found["visits"].bars] == ["0", "1", "2", "3", "4"]
    assert found["dose"].bars[0].label == "0 to 1"
    assert found["dose"].bounds == ("0", "10")
    assert found["dose"].bars[0].count == (made.to_frame()["dose"] < 1).sum()
    assert [bar.label for bar in found["smoker"].bars] == ["False", "True"]
    assert "0 to 1: " in found["dose"].alt


def test_rare_categories_are_counted_together():
    many = [f"street {n}" for n in range(40)]
    schema = Schema.loads(
        f"[label]\nclasses = [0, 1]\n[columns.street]\nkind = 'categorical'\nvalues = {many}"
    )
    (_, street) = columns.histograms(release(schema, 30))
    assert len(street.bars) == columns.MOST_BARS
    assert street.bars[-1].label == "29 others"
    assert sum(bar.count for bar in street.bars) == 30


def test_six_hundred_columns_do_not_make_a_large_page():
    wide = "\n".join(f"c{n} = {{kind = 'numeric', minimum = 0, maximum = 9}}" for n in range(600))
    written = render(release(Schema.loads(f"[label]\nclasses = [0, 1]\n[columns]\n{wide}"), 200))
    assert len(written) < 300_000
    assert "560 more columns are not shown" in written


# What others wrote


EVIL = "<script>alert(1)</script>"


def test_names_and_values_are_escaped():
    schema = Schema.from_dict(
        {
            "label": {"name": f'"{EVIL}', "classes": [EVIL, "'\"><img src=x onerror=alert(1)>"]},
            "columns": {
                EVIL: {"kind": "categorical", "values": [EVIL, "{{ 7 * 7 }}"]},
                f"{EVIL}2": {"kind": "numeric", "minimum": 0, "maximum": 1},
            },
        }
    )
    made = release(
        schema,
        6,
        method=EVIL,
        settings={EVIL: EVIL},
        kernel={"name": EVIL},
        events=(Entry(purpose=f'"{EVIL}', draws=1, noise_multiplier=3.0),),
    )
    scores = Scores(EVIL, (Shown(EVIL, EVIL, 0.5),))
    written = render(made, scores)
    page = Page(written)
    assert len(page.all("script")) == 1
    assert "alert(1)" not in re.search("<script>(.*)</script>", written, re.DOTALL)[1]
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert html.escape(EVIL, quote=False) in written
    assert "{{ 7 * 7 }}" in page.text


def test_classes_of_pictures_are_escaped():
    schema = Schema.loads(f"[label]\nclasses = ['\"{EVIL}', 'b']\n[image]\nheight = 4\nwidth = 4")
    page = Page(render(release(schema, 4)))
    assert len(page.all("script")) == 1
    assert page.all("img")[0]["alt"] == f'class "{EVIL}, point 1 of 2'


# Scores


def test_there_is_nothing_of_scores_unless_they_are_given(bundle):
    assert not re.search("scores?\\b", Page(render(bundle)).text, re.IGNORECASE)


def test_scores_are_marked_as_computed_on_private_data():
    written = render(release(TABLE, 6), SCORES)
    page = Page(written)
    assert re.search('<main>\\s*<p class="warning" role="note">THIS COPY HOLDS PRIVATE', written)
    assert order(page, "Scores, computed on private data", "patients_test.csv", "accuracy 0.8123")
    assert "evaluator metric value trained on records" in page.text
    assert "None" not in page.text
