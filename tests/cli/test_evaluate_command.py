"""`limbeck evaluate`: scores on real records, which stay out of the bundle."""

import json

import pandas as pd
import pytest
from command_line import assert_refused, contents, patients, run

CANARY = "Zebulon77"


def test_scores_are_flat_records_and_the_bundle_stays_as_it_was(release, here):
    patients(100, seed=1).to_csv(here / "test.csv", index=False)
    before = contents(release.folder)
    ran = run("evaluate", release.folder, "--on", "test.csv", "--json", cwd=here)
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert ran.json.keys() == {"bundle", "on", "scores"}
    assert (ran.json["bundle"], ran.json["on"]) == (str(release.folder), "test.csv")
    metrics = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted"]
    metrics += ["roc_auc", "average_precision", "average_precision_of_choices"]
    expected = [(name, metric) for name in ("krr", "majority") for metric in metrics]
    assert [(score["evaluator"], score["metric"]) for score in ran.json["scores"]] == expected
    for score in ran.json["scores"]:
        assert score.keys() == {"evaluator", "metric", "value", "trained_on", "records"}
        assert 0 <= score["value"] <= 1
    assert contents(release.folder) == before


def test_the_table_says_that_scores_are_not_private(release, limbeck_here):
    ran = limbeck_here("evaluate", release.folder, "--on", "patients.csv")
    assert (ran.code, ran.err) == (0, "")
    assert "ROC-AUC" in ran.out
    assert "--real FILE" in ran.out
    assert "not private" in ran.out.splitlines()[-1]


def test_real_records_and_several_models_stand_beside(release, limbeck_here, here):
    patients(100, seed=1).to_csv(here / "test.csv", index=False)
    asked = ("--real", "patients.csv", "--with", "krr,logreg,similarity", "--save", "scores.json")
    ran = limbeck_here("evaluate", release.folder, "--on", "test.csv", *asked)
    assert (ran.code, ran.err) == (0, "")
    assert "--real FILE" not in ran.out
    written = json.loads((here / "scores.json").read_text())
    assert "not private" in written["note"]
    saved = written["scores"]
    found = {(score["evaluator"], score["trained_on"]) for score in saved}
    both = {(name, on) for name in ("krr", "logreg", "similarity") for on in ("release", "real")}
    assert found == both | {("majority", "majority")}
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_scores_are_not_saved_into_the_bundle(release, limbeck_here):
    inside = release.folder / "scores.json"
    ran = limbeck_here("evaluate", release.folder, "--on", "patients.csv", "--save", inside)
    assert_refused(ran, "inside a bundle")
    assert not inside.exists()


def test_nor_into_any_other_bundle(release, limbeck_here, here):
    (here / "other").mkdir()
    (here / "other" / "release.json").write_text("{}")
    other = here / "other" / "scores.json"
    ran = limbeck_here("evaluate", release.folder, "--on", "patients.csv", "--save", other)
    assert_refused(ran, "inside a bundle")


def test_accuracy_counts_the_right_answers(release, limbeck_here, here):
    import limbeck

    rows = pd.read_csv("patients.csv")
    predicted = limbeck.load(release.folder).classifier().predict(rows)
    right = (predicted == rows["ill"]).mean()
    scores = limbeck_here("evaluate", release.folder, "--on", "patients.csv", "--json")
    assert scores.json["scores"][0]["value"] == pytest.approx(right)


def test_an_unknown_evaluator_is_refused_before_anything_is_read(limbeck):
    assert_refused(limbeck("evaluate", "nowhere", "--on", "digits", "--with", "kr"), "krr")


def test_a_folder_that_is_no_bundle(limbeck):
    assert_refused(limbeck("evaluate", "patients.csv", "--on", "digits"), "not a bundle")


@pytest.mark.parametrize("change", ["drop", "text", "label"])
def test_records_that_do_not_fit_the_bundles_schema(release, here, limbeck_here, change):
    rows = patients(20).astype(object)
    if change == "drop":
        rows = rows.drop(columns="age").assign(name=CANARY)
    else:
        rows.loc[3, {"text": "age", "label": "ill"}[change]] = CANARY
    rows.to_csv(here / "test.csv", index=False)
    ran = limbeck_here("evaluate", release.folder, "--on", "test.csv", "--json")
    assert_refused(ran, "test.csv")
    assert CANARY not in ran.err
