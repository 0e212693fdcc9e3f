"""`limbeck sample`: more records of a generator, in a file that is whole or not there."""

import sys

import numpy as np
import pandas as pd
import pytest
from command_line import SCHEMA, assert_refused, contents, run

import generators
from limbeck.data import encode
from limbeck.data.schema import Schema

TABLE = Schema.loads(SCHEMA)
PICTURES = Schema.loads("[label]\nclasses = [3, 7]\n[image]\nheight = 6\nwidth = 5")
RECORDS = 50


@pytest.fixture(autouse=True)
def sampling(monkeypatch):
    """Drawing by the generator of these tests."""
    monkeypatch.setitem(sys.modules, "limbeck.models.sampling", generators.SAMPLING)


@pytest.fixture
def bundles(here):
    """Generated bundles of a table, `out`, and of pictures, `pictures`."""
    generators.generated(TABLE, 5).save(here / "out")
    generators.generated(PICTURES, 5).save(here / "pictures")
    return here


READERS = {".csv": pd.read_csv, ".parquet": pd.read_parquet}


@pytest.mark.parametrize("suffix", READERS)
def test_rows_are_in_the_units_of_the_schema_with_their_label(bundles, limbeck_here, suffix):
    ran = limbeck_here("sample", "out", "-n", RECORDS, "-o", f"more{suffix}")
    assert (ran.code, ran.err) == (0, "")
    frame = READERS[suffix](bundles / f"more{suffix}")
    assert frame.columns.tolist() == ["age", "dose", "ward", "ill"]
    assert len(frame) == RECORDS
    assert frame["age"].dtype.kind == "i"
    assert frame["dose"].between(0, 10).all()
    assert frame["ward"].isin(["north", "south"]).all()
    assert set(frame["ill"]) == {"no", "yes"}


def test_the_file_is_a_source_like_any_other(bundles, limbeck_here):
    limbeck_here("sample", "out", "-n", RECORDS, "-o", "more.csv")
    frame = pd.read_csv(bundles / "more.csv")
    x, labels = encode.encode_table(TABLE, frame)
    assert (x.shape, labels.shape) == ((RECORDS, TABLE.width), (RECORDS,))


def test_pictures_are_bytes_and_rows_are_encoded(bundles, limbeck_here):
    for name in ("out", "pictures"):
        assert limbeck_here("sample", name, "-n", RECORDS, "-o", f"{name}.npz").code == 0
    with np.load(bundles / "pictures.npz", allow_pickle=False) as data:
        assert sorted(data.files) == ["x", "y"]
        assert (data["x"].dtype, data["x"].shape) == (np.uint8, (RECORDS, 6, 5))
        assert set(data["y"].tolist()) == {3, 7}
    with np.load(bundles / "out.npz", allow_pickle=False) as data:
        assert (data["x"].dtype, data["x"].shape) == (np.float32, (RECORDS, TABLE.width))
        assert set(data["y"].tolist()) == {"no", "yes"}


@pytest.mark.usefixtures("bundles")
def test_it_says_that_it_costs_nothing(limbeck_here):
    ran = limbeck_here("sample", "out", "-n", 3, "-o", "more.csv")
    lines = ran.out.splitlines()
    assert lines[0] == "3 records: more.csv"
    assert lines[1].startswith("That cost no privacy: the statement of out covers them")


def test_it_does_not_say_so_where_there_is_no_privacy(here, limbeck_here):
    generators.generated_without_noise(TABLE, 5).save(here / "open")
    ran = limbeck_here("sample", "open", "-n", 3, "-o", "more.csv")
    assert "no privacy guarantee" in ran.out
    assert "covers" not in ran.out


@pytest.mark.usefixtures("bundles")
def test_as_json_it_says_what_was_written(limbeck_here):
    ran = limbeck_here("sample", "out", "-n", 3, "-o", "more.csv", "--json")
    assert ran.json == {"bundle": "out", "records": 3, "file": "more.csv", "warnings": []}


def test_the_same_seed_draws_the_same_and_no_seed_draws_anew(bundles, limbeck_here):
    drawn = {}
    for name, seed in {"a": (4,), "b": (4,), "c": (5,), "d": (), "e": ()}.items():
        given = ("--seed", *seed) if seed else ()
        limbeck_here("sample", "out", "-n", RECORDS, "-o", f"{name}.csv", *given)
        drawn[name] = (bundles / f"{name}.csv").read_bytes()
    assert drawn["a"] == drawn["b"]
    assert len(set(drawn.values())) == 4


def test_a_file_is_replaced_only_where_that_is_asked_for(bundles, limbeck_here):
    (bundles / "more.csv").write_text("ten years of work")
    draw = ("sample", "out", "-n", 3, "-o", "more.csv")
    assert_refused(limbeck_here(*draw), "more.csv exists", "--overwrite")
    assert (bundles / "more.csv").read_text() == "ten years of work"
    assert limbeck_here(*draw, "--overwrite").code == 0
    assert len(pd.read_csv(bundles / "more.csv")) == 3


def test_the_bundle_stays_as_it_is(bundles, limbeck_here):
    before = contents(bundles / "out")
    limbeck_here("sample", "out", "-n", 3, "-o", "more.csv")
    assert contents(bundles / "out") == before


MISTAKES = {
    "an unknown suffix": (["out", "-o", "more.xlsx"], ["more.xlsx", ".csv, .parquet, .npz"]),
    "no suffix": (["out", "-o", "more"], [".csv, .parquet, .npz"]),
    "pictures as text": (["pictures", "-o", "more.csv"], ["images", ".npz"]),
    "pictures as a table": (["pictures", "-o", "more.parquet"], ["images", ".npz"]),
    "no records": (["out", "-o", "more.csv", "-n", "0"], ["-n", "--help"]),
    "less than none": (["out", "-o", "more.csv", "-n", "-3"], ["-n", "--help"]),
    "a negative seed": (["out", "-o", "more.csv", "--seed", "-1"], ["--seed"]),
    "no bundle": (["nowhere", "-o", "more.csv"], ["nowhere is not a bundle"]),
    "a folder in the way": (["out", "-o", "dir.csv", "--overwrite"], ["dir.csv", "a folder"]),
    "no such folder": (["out", "-o", "a/b.csv"], ["a/b.csv cannot be written"]),
    "below a file": (["out", "-o", "patients.csv/b.csv"], ["cannot be written"]),
    "too long a name": (["out", "-o", f"{'o' * 300}.csv"], ["cannot be written"]),
    "the bundle's own records": (
        ["out", "-o", "out/data.parquet", "--overwrite"],
        ["out/data.parquet belongs to a bundle"],
    ),
    "the generator": (
        ["out", "-o", "out/generator.npz", "--overwrite"],
        ["out/generator.npz belongs to a bundle"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line_and_leave_nothing(bundles, limbeck_here, mistake):
    arguments, words = MISTAKES[mistake]
    (bundles / "dir.csv").mkdir()
    before = contents(bundles)
    assert_refused(limbeck_here("sample", "-n", "3", *arguments), *words)
    assert contents(bundles) == before


def test_a_distilled_bundle_has_no_generator(release, here, limbeck_here):
    ran = limbeck_here("sample", release.folder, "-n", 3, "-o", "more.csv")
    assert_refused(ran, "a distilled set is complete: it has no generator")
    assert not (here / "more.csv").exists()


def test_a_damaged_generator_is_one_line(bundles, limbeck_here):
    (bundles / "out" / "generator.npz").write_bytes(b"half a gen")
    assert_refused(limbeck_here("sample", "out", "-n", 3, "-o", "more.csv"), "a damaged bundle")


def test_a_failure_half_way_leaves_what_was_there(bundles, limbeck_here, monkeypatch):
    (bundles / "more.csv").write_text("ten years of work")
    before = contents(bundles)

    def fail(self, path, **_):
        path.write_text("half a")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    ran = limbeck_here("sample", "out", "-n", 3, "-o", "more.csv", "--overwrite")
    assert_refused(ran, "more.csv cannot be written (No space left")
    assert contents(bundles) == before


@pytest.mark.usefixtures("bundles")
def test_evaluating_by_kernel_ridge_regression_says_what_to_use(limbeck_here):
    ran = limbeck_here("evaluate", "out", "--on", "patients.csv", "--with", "mlp,krr")
    assert_refused(ran, "krr needs a kernel", "--with logreg,mlp")


@pytest.mark.usefixtures("bundles")
def test_generated_records_are_evaluated_by_models_trained_on_them(limbeck_here):
    ran = limbeck_here("evaluate", "out", "--on", "patients.csv", "--with", "logreg", "--json")
    assert "logreg" in {score["evaluator"] for score in ran.json["scores"]}


def test_a_mistake_in_a_process_of_its_own(here):
    assert_refused(run("sample", "out", "-n", 3, "-o", "more.xlsx", cwd=here), ".npz")
    assert_refused(run("sample", "nowhere", "-n", 3, "-o", "a.csv", cwd=here), "not a bundle")
