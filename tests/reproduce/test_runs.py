"""Running cells, keeping what was found, and the page made of it."""

import dataclasses
import json
from pathlib import Path

import pytest

from limbeck.cli import reproduce as command
from limbeck.distill.dp_kip import DPKIP
from limbeck.errors import UserError
from limbeck.reproduce import cells, page, results, runs

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "results" / "reproductions.json"
DIGITS = cells.Cell(
    table="dp-kip/table2",
    method="dp-kip-fc-ntk",
    data="digits",
    per_class=1,
    epsilon=5.0,
    evaluator="krr",
    metric="accuracy",
    setting="",
    theirs=50.0,
)


@pytest.fixture
def quick(monkeypatch):
    """The method with hardly any steps."""
    monkeypatch.setitem(runs.METHODS, DIGITS.method, lambda cell: DPKIP(per_class=1, epochs=1))


@pytest.mark.usefixtures("quick")
def test_a_cell_is_run_and_scored_in_the_unit_of_the_paper():
    found = runs.run(DIGITS, seed=0)
    assert 5 < found["value"] <= 100
    assert found["settings"]["epochs"] == 1
    assert found["seconds"] > 0
    share = runs.run(dataclasses.replace(DIGITS, theirs=0.5), seed=0)
    assert share["value"] == pytest.approx(found["value"] / 100, abs=1e-4)


def test_real_pictures_are_drawn_anew_for_each_seed(monkeypatch):
    seen = []

    def train(x, y, shape, training, seed, progress):
        seen.append((len(x), y.sum(axis=0).tolist(), x[:, :40].sum()))
        raise UserError("far enough")

    monkeypatch.setattr(runs.convnets, "train", train)
    real = dataclasses.replace(DIGITS, method="real", evaluator="convnet", per_class=3)
    for seed in (0, 0, 1):
        with pytest.raises(UserError, match="far enough"):
            runs.run(real, seed)
    assert seen[0][:2] == (30, [3.0] * 10)
    assert seen[0] == seen[1] != seen[2]


def test_what_is_stored_is_not_run_again(tmp_path, monkeypatch):
    ran = []

    def run(cell, seed, published, progress):
        ran.append(seed)
        if seed == 2:
            raise KeyboardInterrupt
        return {"value": 40.0 + seed, "settings": {}, "seconds": 1.0}

    monkeypatch.setattr(runs, "run", run)
    store, records = tmp_path / "kept.json", []
    with pytest.raises(Exception, match="interrupted"):
        command._run([DIGITS], [0, 1, 2], False, store, records)
    again = results.load(store)
    assert results.seeds_done(again, DIGITS) == {0, 1}
    with pytest.raises(Exception, match="interrupted"):
        command._run([DIGITS], [0, 1, 2], False, store, again)
    assert ran == [0, 1, 2, 2]


def test_published_settings_are_kept_apart():
    record = {**results.key(DIGITS, published=True), "seed": 0, "value": 1.0}
    assert results.found([record], DIGITS) is None
    assert results.found([record], DIGITS, published=True).values == (1.0,)


def test_both_halves_of_a_table_share_their_runs():
    halves = [dataclasses.replace(DIGITS, setting=f"part={half}") for half in ("left", "right")]
    record = {**results.key(halves[0]), "seed": 0, "value": 1.0}
    assert results.found([record], halves[1]).mean == 1.0


@pytest.mark.parametrize("text", ["{", '{"a": 1}', "[1]", '[{"value": 1}]'])
def test_a_file_that_holds_no_results_is_refused(tmp_path, text):
    (tmp_path / "kept.json").write_text(text)
    with pytest.raises(UserError, match="does not hold results"):
        results.load(tmp_path / "kept.json")


@pytest.mark.parametrize(
    ("value", "word"), [(51.1, "above"), (50.9, "same"), (49.1, "same"), (48.9, "below")]
)
def test_a_point_either_way_is_the_same(value, word):
    assert page.verdict(DIGITS, results.Found((value,), ())) == word


def test_a_row_shows_theirs_ours_and_the_spread():
    kept = [{**results.key(DIGITS), "seed": s, "value": 50.0 + s, "seconds": 2.0} for s in range(3)]
    assert page.row(DIGITS, kept) == [
        "digits:1:eps5",
        "dp-kip-fc-ntk",
        "50",
        "51.0 (50.0 to 52.0)",
        "+1.0",
        "2",
    ]
    assert page.row(DIGITS, [])[3] == "not run"


def test_a_number_by_another_protocol_has_its_metric_and_no_difference():
    beside = dataclasses.replace(DIGITS, metric="roc", setting=cells.OUR_PROTOCOL)
    kept = [{**results.key(beside), "seed": 0, "value": 60.0, "seconds": 2.0}]
    shown = page.row(beside, kept)
    assert (shown[0], shown[4]) == ("digits:1:eps5:protocol=ours, roc", "")


def test_the_page_is_the_one_that_the_stored_results_make():
    """If this fails: limbeck reproduce --results STORED --page docs/reproductions.md."""
    written = (ROOT / "docs" / "reproductions.md").read_text(encoding="utf-8")
    assert written == page.page(results.load(STORED))


def test_every_stored_result_belongs_to_a_cell():
    keys = [results.key(c) for table in cells.tables() for c in cells.cells_of(table)]
    for record in json.loads(STORED.read_text()):
        assert {name: record[name] for name in keys[0]} in keys


def test_cells_that_score_one_release_follow_each_other(monkeypatch, tmp_path):
    """Else every one of them would make it anew."""
    ran = []

    def run(cell, seed, published, progress):
        ran.append((cell.setting, cell.evaluator))
        return {"value": 0.5}

    monkeypatch.setattr(runs, "run", run)
    chosen = [
        dataclasses.replace(DIGITS, setting=setting, evaluator=evaluator)
        for evaluator in ("logreg", "mlp")
        for setting in ("width=100", "width=50")
    ]
    command._run(chosen, [0], False, tmp_path / "store.json", [])
    wide, narrow = "width=100", "width=50"
    assert ran == [(wide, "logreg"), (wide, "mlp"), (narrow, "logreg"), (narrow, "mlp")]


def test_a_row_says_by_what_it_is_scored_where_the_table_has_several():
    pictures = cells.cells_of("dp-ntk/table2")
    assert len({(page.row(cell, [])[0], cell.method) for cell in pictures}) == len(pictures)
    assert page.row(DIGITS, [])[0] == DIGITS.label
