"""`limbeck generate`: from files to records that anyone may have."""

import numpy as np
import pandas as pd
import pytest
from command_line import assert_refused

SMALL = ("--epsilon", "2", "--steps", "5", "-n", "30", "--schema", "patients.toml")


def test_records_in_the_schemas_units_and_a_json_object(limbeck_here, here):
    ran = limbeck_here("generate", "patients.csv", *SMALL, "-o", "made", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.json.keys() == {
        *("bundle", "method", "epsilon", "delta", "records", "seconds", "peak_memory_mb")
    }
    assert ran.json["records"] == 30
    assert 1.99 < ran.json["epsilon"] <= 2
    frame, real = pd.read_parquet(here / "made" / "data.parquet"), pd.read_csv("patients.csv")
    assert set(frame.columns) == set(real.columns)
    assert set(frame["ill"]) <= set(real["ill"])
    more = limbeck_here("sample", "made", "-n", "70", "-o", "more.csv")
    assert (more.code, len(pd.read_csv(here / "more.csv"))) == (0, 70)


def test_what_was_made_and_what_to_do_with_it(limbeck_here):
    ran = limbeck_here("generate", "patients.csv", *SMALL, "-o", "told", "--method", "dp-hp")
    assert ran.code == 0
    assert ran.out.startswith("The 30 records are (ε = ")
    assert "limbeck sample told" in ran.out
    scored = limbeck_here("evaluate", "told", "--on", "patients.csv", "--json")
    assert {score["evaluator"] for score in scored.json["scores"]} == {"logreg", "majority"}
    assert_refused(limbeck_here("evaluate", "told", "--on", "patients.csv", "--with", "krr"), "krr")


def test_pictures_are_bytes(limbeck_here, here):
    ran = limbeck_here(
        "generate", "digits", "--epsilon", "2", "--steps", "2", "-n", "20", "-o", "pictures",
        "--method", "dp-ntk", "--set", "widths=9,8",
    )  # fmt: skip
    assert ran.code == 0
    with np.load(here / "pictures" / "data.npz") as data:
        assert (data["x"].dtype, data["x"].shape) == (np.uint8, (20, 8, 8))


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (("--method", "readout"), "limbeck distill"),
        (("--set", "widths=8"), "dp-merf has no setting 'widths'"),
        (("--method", "dp-ntk", "--set", "widths=8,x"), "integers separated by commas, not '8,x'"),
        (("--method", "dp-ntk", "--set", "net=rnn"), "net must be fc or cnn, not 'rnn'"),
        (("--method", "dp-ntk", "--set", "net=cnn"), "widths=30,200"),
        (("--set", "learning_rate=0"), "learning_rate must be a positive number, not 0"),
    ],
)
def test_mistakes_are_told_before_any_work(limbeck_here, here, asked, word):
    ran = limbeck_here("generate", "patients.csv", *SMALL, "-o", "wrong", *asked)
    assert_refused(ran, word)
    assert not (here / "wrong").exists()


def test_a_budget_is_asked_for(limbeck_here):
    assert_refused(limbeck_here("generate", "digits"), "--epsilon 1")
    assert_refused(limbeck_here("distill", "digits", "--method", "dp-ntk"), "limbeck generate")
