"""`limbeck report`: a page in the bundle; with scores, which are private, a page outside of it."""

import shutil

import pytest
from command_line import assert_refused, contents, run

SCORES = '{"on": "test.csv", "scores": [{"evaluator": "krr", "metric": "accuracy", "value": 0.8}]}'


@pytest.fixture
def bundle(release, here):
    """A copy of the release in the working folder, to be written into."""
    return shutil.copytree(release.folder, here / "out")


def test_the_page_lies_in_the_bundle(bundle, limbeck):
    ran = limbeck("report", "out")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("out/report.html: open it in a browser")
    assert "differentially private" in (bundle / "report.html").read_text()


def test_as_json_it_says_what_was_written(bundle, here, limbeck_here):
    ran = limbeck_here("report", "out", "-o", "page.html", "--json")
    size = (here / "page.html").stat().st_size
    assert ran.json == {"bundle": "out", "report": "page.html", "bytes": size}
    assert not (bundle / "report.html").exists()


def test_what_evaluate_prints_is_what_report_reads(bundle, here, limbeck_here):
    (here / "scores.json").write_text(
        limbeck_here("evaluate", "out", "--on", "patients.csv", "--json").out
    )
    before = contents(bundle)
    ran = limbeck_here("report", "out", "--with-scores", "scores.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("out-report-private.html: ")
    assert "do not publish" in ran.out
    page = (here / "out-report-private.html").read_text()
    assert "computed on private data" in page
    assert "balanced_accuracy" in page
    assert contents(bundle) == before


MISTAKES = {
    "no bundle": (["nowhere"], ["nowhere is not a bundle"]),
    "a file": (["patients.csv"], ["patients.csv is not a bundle"]),
    "missing scores": (["out", "--with-scores", "no.json"], ["no.json", "limbeck evaluate"]),
    "scores of another kind": (["out", "--with-scores", "patients.csv"], ["not JSON"]),
    "scores into the bundle": (
        ["out", "--with-scores", "scores.json", "-o", "out/mine.html"],
        ["scores are private", "outside"],
    ),
    "data in the way": (["out", "-o", "patients.csv"], ["exists and is not a report"]),
    "no such folder": (["out", "-o", "a/b.html"], ["a/b.html cannot be written"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.usefixtures("bundle")
def test_mistakes_are_one_line_and_leave_nothing(here, limbeck_here, mistake):
    arguments, words = MISTAKES[mistake]
    (here / "scores.json").write_text(SCORES)
    before = contents(here)
    assert_refused(limbeck_here("report", *arguments), *words)
    assert contents(here) == before


def test_a_mistake_in_a_process_of_its_own(here):
    assert_refused(run("report", "nowhere", cwd=here), "limbeck distill")
