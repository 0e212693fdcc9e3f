"""`limbeck schema`: a first schema from the rows, refused until its owner stands by it."""

import tomllib

import pytest
from command_line import SMALL, assert_refused, patients, release_json, statement

CANARY = "Zebulon77"


def test_a_draft_says_that_it_was_read_from_the_rows(limbeck, here):
    ran = limbeck("schema", "draft", "patients.csv", "-o", "draft.toml")
    assert (ran.code, ran.err) == (0, "")
    assert "Review every bound" in ran.out
    drafted = tomllib.loads((here / "draft.toml").read_text())
    assert drafted["drafted_from_private_data"]
    assert drafted["label"] == {"name": "ill", "classes": ["no", "yes"]}
    assert drafted["rows"] == "private"
    assert drafted["columns"].keys() == {"age", "dose", "ward"}


def test_a_draft_goes_to_the_screen_or_into_json(limbeck_here):
    written = tomllib.loads(limbeck_here("schema", "draft", "patients.csv").out)
    ran = limbeck_here("schema", "draft", "patients.csv", "--label", "ward", "--json")
    assert ran.json["written"] is None
    assert written["label"]["name"] == "ill"
    assert ran.json["schema"]["label"] == {"name": "ward", "classes": ["north", "south"]}


def test_a_draft_never_replaces_a_file(limbeck_here, here):
    ran = limbeck_here("schema", "draft", "patients.csv", "-o", "patients.toml")
    assert_refused(ran, "patients.toml exists")
    assert "drafted" not in (here / "patients.toml").read_text()


def test_a_draft_that_cannot_be_written(limbeck_here):
    ran = limbeck_here("schema", "draft", "patients.csv", "-o", "no/such/folder.toml")
    assert_refused(ran, "no/such/folder.toml: cannot be written")


def test_a_draft_is_refused_until_it_is_accepted_or_reviewed(limbeck, limbeck_here, here):
    assert limbeck_here("schema", "draft", "patients.csv", "-o", "draft.toml").code == 0
    command = ("distill", "patients.csv", "--schema", "draft.toml", "--epsilon", 1, *SMALL, "-o")
    assert_refused(limbeck(*command, "out"), "--accept-drafted-schema")
    assert not (here / "out").exists()

    assert limbeck_here(*command, "out", "--accept-drafted-schema").code == 0
    for first in (
        statement(here / "out")[0],
        release_json(here / "out")["privacy"]["statement"].splitlines()[0],
    ):
        assert first.startswith("WARNING: the schema")
        assert "drafted from the private rows" in first
    assert release_json(here / "out")["schema"]["drafted_from_private_data"]

    lines = (here / "draft.toml").read_text().splitlines(keepends=True)
    reviewed = [line for line in lines if not line.startswith("drafted_from_private_data")]
    assert len(reviewed) == len(lines) - 1
    (here / "draft.toml").write_text("".join(reviewed))
    assert limbeck_here(*command, "reviewed").code == 0
    assert "drafted" not in (here / "reviewed" / "README.md").read_text()


def test_data_that_fit_pass_the_check(limbeck):
    ran = limbeck("schema", "check", "patients.toml", "patients.csv")
    assert (ran.code, ran.out, ran.err) == (0, "the data fit the schema\n", "")


def test_findings_name_columns_and_rows_but_no_values(limbeck_here, here):
    rows = patients(30).astype(object)
    rows.loc[4, "age"] = rows.loc[6, "ill"] = CANARY
    rows.to_csv(here / "wrong.csv", index=False)
    ran = limbeck_here("schema", "check", "patients.toml", "wrong.csv", "--json")
    assert (ran.code, ran.err) == (2, "")
    assert ran.json.keys() == {"schema", "source", "findings"}
    found = "\n".join(ran.json["findings"])
    assert "column 'age': not a number in 1 rows, first in row 5" in found
    assert "column 'ill': undeclared values, 1 distinct ones, first in row 7" in found
    assert CANARY not in ran.out


@pytest.mark.parametrize(
    ("written", "word"), [(None, "no such schema file"), ("[label", "not valid TOML")]
)
def test_a_schema_that_cannot_be_read(limbeck, here, written, word):
    if written is not None:
        (here / "s.toml").write_text(written)
    assert_refused(limbeck("schema", "check", "s.toml", "patients.csv"), "s.toml", word)
