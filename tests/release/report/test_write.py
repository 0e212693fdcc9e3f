"""Where a report goes, what it never overwrites, and how scores are read."""

import json
import re
import stat

import pytest
from releases import PICTURES, TABLE, release

from limbeck.errors import UserError
from limbeck.release.report import scores
from limbeck.release.report.render import render, write
from limbeck.release.report.scores import Shown

FOUND = {
    "bundle": "/home/owner/release",
    "on": "/home/owner/secret/test.csv",
    "scores": [
        {"evaluator": "krr", "metric": "accuracy", "value": 0.81, "note": "tolerated"},
        {"evaluator": "krr", "metric": "roc_auc", "value": 1},
    ],
    "seconds": 3,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A bundle in `release`, seen from the folder above."""
    monkeypatch.chdir(tmp_path)
    return release(TABLE, 6).save(tmp_path / "release")


@pytest.fixture
def added(tmp_path):
    (tmp_path / "scores.json").write_text(json.dumps(FOUND))
    return scores.read(tmp_path / "scores.json")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_report_goes_into_the_bundle_and_others_may_read_it(folder):
    before = names(folder)
    written = write(folder)
    assert written == folder / "report.html"
    assert names(folder) == sorted([*before, "report.html"])
    assert stat.S_IMODE(written.stat().st_mode) == stat.S_IMODE(
        (folder / "README.md").stat().st_mode
    )
    assert written.read_text(encoding="utf-8").endswith("</html>\n")


def test_the_page_does_not_say_where_the_bundle_was(folder, tmp_path):
    assert str(tmp_path) not in write(folder).read_text()
    assert tmp_path.name not in write(folder).read_text()


def test_a_report_replaces_a_report(folder):
    write(folder)
    (folder / "report.html").write_text(
        (folder / "report.html").read_text().replace("Distilled data", "Something old")
    )
    assert "Something old" not in write(folder).read_text()


def test_anything_else_is_never_overwritten(folder, tmp_path):
    (tmp_path / "thesis.html").write_text("ten years of work")
    for there in (tmp_path / "thesis.html", folder / "data.npz", folder / "README.md"):
        before = there.read_bytes()
        with pytest.raises(UserError, match="exists and is not a report; choose another name"):
            write(folder, there)
        assert there.read_bytes() == before


@pytest.mark.parametrize("output", ["nowhere/report.html", "release", "o" * 300, "o" * 300 + "/o"])
def test_a_place_that_cannot_be_written_is_told_in_one_line(folder, tmp_path, output, added):
    before = names(tmp_path)
    for given in (None, added):
        with pytest.raises(UserError, match="cannot be written"):
            write(folder, output, given)
    assert names(tmp_path) == before


def test_a_failure_half_way_leaves_the_old_report(folder, monkeypatch):
    before = write(folder).read_bytes()
    there = names(folder)

    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(folder), "replace", fail)
    with pytest.raises(UserError, match="No space left"):
        write(folder)
    assert (folder / "report.html").read_bytes() == before
    assert names(folder) == there


def test_a_folder_that_is_no_bundle(tmp_path):
    with pytest.raises(UserError, match="not a bundle"):
        write(tmp_path / "nowhere")


def test_an_overwritten_bundle_loses_its_old_report(folder):
    write(folder)
    release(PICTURES, 6).save(folder, overwrite=True)
    assert "report.html" not in names(folder)


# Scores


def test_scores_never_go_into_a_bundle_unasked(folder, added, tmp_path):
    before = names(folder)
    written = write(folder, scores=added)
    assert written.resolve() == tmp_path / "release-report-private.html"
    assert names(folder) == before
    assert "0.8100" in written.read_text()


def test_scores_never_go_into_a_bundle_even_if_asked(folder, added, tmp_path, monkeypatch):
    before = names(folder)
    other = release(PICTURES, 6).save("other")
    (tmp_path / "link").symlink_to(folder)
    (other / "below").mkdir()
    for place in (folder, other, other / "below", tmp_path / "link", folder / ".." / "release"):
        with pytest.raises(UserError, match="outside of it with -o"):
            write(folder, place / "mine.html", added)
    monkeypatch.chdir(folder)  # where the default name would be
    with pytest.raises(UserError, match="outside of it with -o"):
        write(".", scores=added)
    assert names(folder) == before


def test_scores_are_read_without_the_folders_above_their_source(added):
    assert added.on == "test.csv"
    assert added.scores == (Shown("krr", "accuracy", 0.81), Shown("krr", "roc_auc", 1.0))
    assert not re.search("home/|secret|tolerated", render(release(TABLE, 6), added))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON"),
        ("krr accuracy 0.8", "not JSON"),
        ("[1, 2]", "does not hold scores"),
        ("{}", "does not hold scores"),
        ('{"on": "digits"}', "does not hold scores"),
        ('{"on": 3, "scores": []}', "does not hold scores"),
        ('{"on": "digits", "scores": {"krr": 0.8}}', "does not hold scores"),
        ('{"on": "digits", "scores": [0.8]}', "does not hold scores"),
        ('{"on": "digits", "scores": [{"evaluator": "krr"}]}', "does not hold scores"),
        (
            '{"on": "digits", "scores": [{"evaluator": "a", "metric": "b", "value": "high"}]}',
            "does not hold scores",
        ),
    ],
)
def test_a_file_that_holds_no_scores_says_how_to_make_one(tmp_path, text, words):
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(UserError, match=f"{words}; `limbeck evaluate") as caught:
        scores.read(path)
    assert "\n" not in str(caught.value)


def test_missing_scores_and_binary_scores(tmp_path):
    with pytest.raises(UserError, match=r"cannot be read \(No such file"):
        scores.read(tmp_path / "nowhere.json")
    (tmp_path / "scores.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not JSON"):
        scores.read(tmp_path / "scores.json")
