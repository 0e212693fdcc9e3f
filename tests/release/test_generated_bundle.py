"""Generated records: a bundle keeps them and their generator, and draws more of them."""

import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import limbeck as lb
from generators import SAMPLING, draw, generated, generated_without_noise, ledger, saved
from limbeck.data import encode
from limbeck.models.state import GeneratorState
from limbeck.privacy.noise import SeededEntropy
from limbeck.release import card
from limbeck.release import preview as previews
from limbeck.release.bundle import Bundle, Distilled, Generated

TABLE = lb.Schema.loads(
    """
    [label]
    name = "ill"
    classes = ["no", "yes"]
    [columns.age]
    kind = "integer"
    minimum = 1
    maximum = 100
    [columns.dose]
    kind = "numeric"
    minimum = 0
    maximum = 10
    [columns.smoker]
    kind = "boolean"
    [columns.ward]
    kind = "categorical"
    values = ["north", "south", "west"]
    """
)
PICTURES = lb.Schema.loads("[label]\nclasses = [3, 7]\n[image]\nheight = 6\nwidth = 5")
COLOURED = lb.Schema.loads(
    "[label]\nclasses = [true, 'unknown', 5]\n[image]\nheight = 4\nwidth = 3\nchannels = 3"
)
SCHEMAS = {"table": TABLE, "pictures": PICTURES, "coloured": COLOURED}
RECORDS = 120


@pytest.fixture(params=SCHEMAS)
def bundle(request):
    return generated(SCHEMAS[request.param], RECORDS)


@pytest.fixture(autouse=True)
def sampling(monkeypatch):
    """Drawing by the generator of these tests."""
    monkeypatch.setitem(sys.modules, "limbeck.models.sampling", SAMPLING)


@pytest.fixture
def distilled():
    made = generated(TABLE, 4)
    common = {field.name: getattr(made, field.name) for field in dataclasses.fields(Bundle)}
    return Distilled(**common, kernel={"name": "fc-ntk"}, regularisation=1e-3)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def release_json(folder):
    return json.loads((folder / "release.json").read_text())


# What it holds


def test_what_is_saved_is_what_is_loaded(bundle, tmp_path):
    loaded = lb.load(bundle.save(tmp_path / "out"))
    for field in dataclasses.fields(bundle):
        kept, read = getattr(bundle, field.name), getattr(loaded, field.name)
        if isinstance(kept, np.ndarray):
            assert kept.dtype == read.dtype == np.float32
            np.testing.assert_array_equal(read, kept, err_msg=field.name)
        elif isinstance(kept, GeneratorState):
            assert read.config == kept.config
            assert list(read.arrays) == list(kept.arrays)
            for name, array in kept.arrays.items():
                assert read.arrays[name].dtype == array.dtype
                np.testing.assert_array_equal(read.arrays[name], array)
        else:
            assert read == kept, field.name
    assert loaded.y.tolist() == bundle.y.tolist()
    assert loaded.statement() == bundle.statement()


def test_records_are_the_nearest_that_the_schema_admits(bundle):
    x, labels = draw(bundle.schema, saved(bundle.schema), RECORDS, SeededEntropy(0))
    np.testing.assert_array_equal(bundle.points, encode.nearest_records(bundle.schema, x))
    assert bundle.y.tolist() == encode.decode_labels(bundle.schema, labels).tolist()
    np.testing.assert_array_equal(bundle.y_soft, np.eye(len(bundle.schema.classes))[labels])


def test_a_frame_has_the_label_and_no_weights():
    frame = generated(TABLE, RECORDS).to_frame()
    assert frame.columns.tolist() == ["age", "dose", "smoker", "ward", "ill"]
    assert frame["age"].dtype.kind == "i"
    assert frame["age"].between(1, 100).all()
    assert set(frame["ward"]) == {"north", "south", "west"}
    assert set(frame["ill"]) == {"no", "yes"}


def test_the_encoded_rows_and_the_frame_are_the_same_records():
    made = generated(TABLE, RECORDS)
    np.testing.assert_allclose(
        encode.encode_rows(TABLE, made.to_frame()), made.points, rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("schema", [PICTURES, COLOURED])
def test_pictures_have_whole_pixels_that_the_library_takes(schema):
    made = generated(schema, RECORDS)
    assert made.x.dtype == np.uint8
    np.testing.assert_array_equal(encode.encode_images(schema, made.x), made.points)


def test_pixels_beyond_the_range_are_cut_off_and_do_not_wrap():
    x = np.tile(np.float32([-0.2, 1.2]), (2, PICTURES.width // 2))
    made = generated(PICTURES, 2, x=x, labels=np.array([0, 1]))
    assert set(made.x.ravel().tolist()) == {0, 255}


# The files


def test_the_files_of_a_table(tmp_path):
    made = generated(TABLE, RECORDS)
    folder = made.save(tmp_path / "out")
    assert names(folder) == [
        *("README.md", "data.npz", "data.parquet", "generator.npz", "preview.png", "release.json")
    ]
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "data.parquet"), made.to_frame(), check_dtype=False
    )
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        assert sorted(data.files) == ["x", "y"]
        assert data["x"].dtype == np.float32
        assert data["y"].tolist() == made.y.tolist()
    assert release_json(folder)["model"] == {"generator": made.generator.config}
    assert release_json(folder)["records"] == RECORDS


def test_pictures_are_stored_as_bytes_and_stay_small(tmp_path):
    mnist = lb.Schema.loads(
        f"[label]\nclasses = {list(range(10))}\n[image]\nheight = 28\nwidth = 28"
    )
    folder = generated(mnist, 2000).save(tmp_path / "out")
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        assert sorted(data.files) == ["x", "y"]
        assert data["x"].dtype == np.uint8
        assert data["x"].shape == (2000, 28, 28)
    whole = sum(path.stat().st_size for path in folder.iterdir())
    assert whole < 1.1 * 2000 * 28 * 28  # noise cannot be compressed, but is a byte a pixel


def test_a_generator_is_numbers_and_a_text(bundle, tmp_path):
    folder = bundle.save(tmp_path / "out")
    with np.load(folder / "generator.npz", allow_pickle=False) as held:
        assert json.loads(held["config"].item()) == bundle.generator.config
        weights = {f"weights/{name}" for name in bundle.generator.arrays}
        assert set(held.files) == {"config", *weights}


def test_anything_but_numbers_is_no_generator():
    for array in (np.array([{}]), np.array(["text"])):
        with pytest.raises(TypeError, match="'w' does not"):
            GeneratorState({}, {"w": array})


def test_a_distilled_bundle_in_its_place_leaves_no_generator(tmp_path, distilled):
    generated(PICTURES, RECORDS).save(tmp_path / "out")
    distilled.save(tmp_path / "out", overwrite=True)
    assert "generator.npz" not in names(tmp_path / "out")
    assert isinstance(lb.load(tmp_path / "out"), Distilled)
    generated(PICTURES, RECORDS).save(tmp_path / "out", overwrite=True)
    assert isinstance(lb.load(tmp_path / "out"), Generated)
    assert "data.parquet" not in names(tmp_path / "out")


def everything_readable(folder):
    """The bytes of every file, as they are and unpacked."""
    held = [path.read_bytes() for path in folder.iterdir()]
    for path in folder.glob("*.npz"):
        with np.load(path, allow_pickle=False) as data:
            held += [data[name].tobytes() for name in data.files]
    return b"\n".join(held)


def test_what_is_kept_is_what_was_given_and_nothing_of_who_made_it(tmp_path):
    """The frame of a private method is out of reach: a bundle holds records and weights only."""
    exact = np.random.default_rng(5).uniform(0.3, 0.7, TABLE.width)
    noisy = (exact + np.random.default_rng(6).normal(0, 0.05, TABLE.width)).astype(np.float32)
    generator = GeneratorState({"spread": 0.2}, {"[0].mean": noisy})
    x, labels = draw(TABLE, generator, RECORDS, SeededEntropy(0))
    made = generated(TABLE, RECORDS, x=x, labels=labels, generator=generator)
    held = everything_readable(made.save(tmp_path / "out"))
    assert noisy.tobytes() in held  # the search finds what is there
    for trace in (exact, exact.astype(np.float32)):
        assert trace.tobytes() not in held
        for number in trace:
            assert number.tobytes() not in held
            assert repr(float(number)).encode() not in held
    assert str(tmp_path).encode() not in held


# When something is wrong


def test_what_is_not_finite_is_not_released():
    x, labels = draw(TABLE, saved(TABLE), 3, SeededEntropy(0))
    x[1, 1] = np.nan
    with pytest.raises(lb.UserError, match="smaller --learning-rate"):
        generated(TABLE, 3, x=x, labels=labels)
    broken = GeneratorState({}, {"w": np.array([np.inf])})
    with pytest.raises(lb.UserError, match="smaller --learning-rate"):
        generated(TABLE, 3, generator=broken)


def test_more_than_the_budget_is_not_released():
    with pytest.raises(RuntimeError, match="more than the budget"):
        generated(TABLE, 3, budget=lb.Budget(epsilon=0.1))


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2], [0, 1, -1], [[0], [1], [0]]])
def test_labels_are_one_declared_class_a_record(labels):
    with pytest.raises(ValueError, match="position of one class"):
        generated(TABLE, 3, labels=np.array(labels))


def change(name, changed):
    return lambda folder: (folder / name).write_bytes(changed((folder / name).read_bytes()))


def change_arrays(name, **changed):
    def damage(folder):
        with np.load(folder / name) as held:
            arrays = {key: held[key] for key in held.files}
        arrays = {key: array for key, array in {**arrays, **changed}.items() if array is not None}
        np.savez(folder / name, **arrays)

    return damage


DAMAGE = {
    "missing": (lambda folder: (folder / "generator.npz").unlink(), "no generator.npz"),
    "cut": (change("generator.npz", lambda b: b[: len(b) // 2]), "damaged"),
    "empty": (change("generator.npz", lambda b: b""), "damaged"),
    "text": (change("generator.npz", lambda b: b"hello, world"), "damaged"),
    "flipped": (
        change("generator.npz", lambda b: b[:70] + bytes([b[70] ^ 255]) + b[71:]),
        "damaged",
    ),
    "pickled weights": (
        change_arrays("generator.npz", **{"weights/a": np.array([{}], object)}),
        "damaged",
    ),
    "weights of text": (
        change_arrays("generator.npz", **{"weights/a": np.array(["a"])}),
        "damaged",
    ),
    "no config": (change_arrays("generator.npz", config=None), "damaged"),
    "config is no JSON": (change_arrays("generator.npz", config=np.array("{")), "damaged"),
    "another config": (change_arrays("generator.npz", config=np.array("{}")), "damaged"),
    "a number for a config": (change_arrays("generator.npz", config=np.array(3)), "damaged"),
    "no labels": (change_arrays("data.npz", y=None), "damaged"),
    "too few labels": (change_arrays("data.npz", y=np.array(["no"])), "damaged"),
    "an undeclared class": (change_arrays("data.npz", y=np.array(["no"] * 29 + ["?"])), "damaged"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return generated(TABLE, 30).save(tmp_path_factory.mktemp("written") / "out")


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_bundle_is_refused_in_one_line(written, tmp_path, what):
    damage, complaint = DAMAGE[what]
    shutil.copytree(written, tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(lb.UserError, match=complaint) as caught:
        lb.load(tmp_path / "out")
    assert "\n" not in str(caught.value)


# Drawing more


def test_more_records_are_in_the_units_of_the_schema(tmp_path):
    more = lb.load(generated(TABLE, 5).save(tmp_path / "out")).sample(RECORDS, seed=0)
    frame = more.to_frame()
    assert len(frame) == len(more.y) == RECORDS
    assert frame["age"].dtype.kind == "i"
    assert frame["age"].between(1, 100).all()
    assert frame["dose"].between(0, 10).all()
    assert set(frame["ward"]) == {"north", "south", "west"}
    assert set(frame["ill"]) == {"no", "yes"}


def test_more_records_are_a_release_like_the_first(bundle, tmp_path):
    more = bundle.sample(7, seed=1)
    assert more.statement() == bundle.statement().replace(f"The {RECORDS} ", "The 7 ")
    assert (more.epsilon, more.events, more.seeded) == (bundle.epsilon, bundle.events, False)
    again = lb.load(more.save(tmp_path / "more"))
    np.testing.assert_array_equal(again.x, more.x)
    assert len(bundle.points) == RECORDS


def test_the_same_seed_draws_the_same_and_no_seed_draws_anew(bundle):
    first, same, other, fresh, anew = (bundle.sample(20, s).x for s in (3, 3, 4, None, None))
    np.testing.assert_array_equal(first, same)
    for one, two in ((first, other), (first, fresh), (fresh, anew)):
        assert (one != two).any()


def test_a_number_of_records_below_one_is_refused(bundle):
    for n in (0, -3):
        with pytest.raises(lb.UserError, match="at least 1"):
            bundle.sample(n)


def test_kernel_ridge_regression_says_what_to_use_instead(bundle):
    from limbeck.evaluate import krr
    from limbeck.evaluate.task import Task

    with pytest.raises(lb.UserError, match="--with logreg,mlp"):
        krr.evaluate(Task(bundle, test=None))


def test_a_bundle_is_loaded_without_the_generator_and_jax():
    code = "import limbeck.release.bundle, sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jax", "limbeck.generate"} & set(ran.stdout.split())


# What it says


def test_the_statement_speaks_of_records_and_of_more(bundle):
    assert bundle.statement().startswith(f"The {RECORDS} records are (ε = ")
    assert "any further records drawn from its generator are covered" in bundle.statement()
    assert "points" not in bundle.statement()


def test_a_distilled_statement_does_not(distilled):
    assert "The 4 points are" in distilled.statement()
    assert "The whole release, with all its files, is covered." in distilled.statement()


def test_the_card_says_what_it_is_good_for_and_how_to_draw_more(bundle):
    written = card.readme(bundle)
    assert written.startswith("# Generated data\n\n## Privacy\n\nThe 120 records are")
    more = "more.npz" if bundle.schema.is_image else "more.csv"
    for words in (
        "120 records made by `dp-ntk`, not records of anybody.",
        "a sample of a model",
        "learned from noisy measurements",
        "not for\ncounting people",
        "which costs no privacy",
        f"limbeck sample . -n 1000 -o {more}",
        "- `generator.npz`",
        "- `release.json`",
    ):
        assert words in written, words
    for words in ("points", "kernel", "classifier", "y_soft", "{", "}"):
        assert words not in written, words
    assert ("data.parquet" in written) is not bundle.schema.is_image


@pytest.mark.parametrize("schema", [TABLE, PICTURES])
def test_what_is_not_private_claims_nothing(schema):
    made = generated_without_noise(schema, 6)
    written = card.readme(made)
    assert made.statement().startswith("NOT PRIVATE. These records were made without noise.")
    for claim in ("differentially", "anybody", "noisy", "no privacy", "covered"):
        assert claim not in written.replace("no privacy guarantee", "")


def test_a_distilled_card_without_privacy_claims_nothing(distilled):
    without = dataclasses.replace(distilled, budget=None, epsilon=float("inf"))
    assert "say nothing about single records" in card.readme(distilled)
    assert "say nothing about single records" not in card.readme(without)


# What it looks like


def preview(made, tmp_path):
    previews.draw(made, tmp_path / "preview.png")
    return np.asarray(Image.open(tmp_path / "preview.png").convert("RGB"))


def test_pictures_are_shown_ten_of_each_class(tmp_path):
    made = generated(PICTURES, RECORDS)
    shown = preview(made, tmp_path)
    zoom = shown.shape[1] // (2 * 6 - 1)
    assert shown.shape == (zoom * (10 * 7 - 1), zoom * (2 * 6 - 1), 3)
    first = previews.normalised(made.points[made.y == 3][:1].reshape(1, 6, 5, 1))[0, :, :, 0]
    np.testing.assert_array_equal(shown[: zoom * 6 : zoom, : zoom * 5 : zoom, 0], first)


def table_of(columns):
    described = "\n".join(
        f"c{n} = {{kind = 'numeric', minimum = 0, maximum = 9}}" for n in range(columns)
    )
    return lb.Schema.loads(f"[label]\nclasses = [0, 1]\n[columns]\n{described}")


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn."""
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    return drawn


def test_the_columns_of_a_table_are_shown_as_histograms(figures):
    made = generated(TABLE, RECORDS)
    previews.draw(made, None)
    panels = {axes.get_title(): axes for axes in figures[0].axes if axes.get_title()}
    assert list(panels) == ["ill", "age", "dose", "smoker", "ward"]
    for name, axes in panels.items():
        assert sum(bar.get_height() for bar in axes.patches) == RECORDS, name
    heights = [bar.get_height() for bar in panels["ward"].patches]
    assert heights == [(made.to_frame()["ward"] == w).sum() for w in ("north", "south", "west")]
    assert figures[0].get_suptitle() == f"{RECORDS} generated records"


@pytest.mark.parametrize(("columns", "words"), [(23, ""), (30, "; 7 more columns are not shown")])
def test_many_columns_are_counted_rather_than_shown(figures, columns, words):
    previews.draw(generated(table_of(columns), 5), None)
    assert len([axes for axes in figures[0].axes if axes.get_title()]) == 24
    assert figures[0].get_suptitle() == f"5 generated records{words}"


@pytest.mark.parametrize("columns", [1, 5, 6, 30])
def test_any_number_of_columns_can_be_drawn(tmp_path, columns):
    assert preview(generated(table_of(columns), 5), tmp_path).min() < 128


def test_awkward_names_and_ranges_can_be_drawn(tmp_path):
    long = "$x$ an unbroken name that is much longer than any panel is wide" * 2
    schema = lb.Schema.from_dict(
        {
            "label": {"name": long, "classes": [long, f"{long}2"]},
            "columns": {
                "$": {"kind": "numeric", "minimum": -1e300, "maximum": 1e7},
                "street": {"kind": "categorical", "values": [f"{long}{n}" for n in range(40)]},
                "tiny": {"kind": "numeric", "minimum": 0, "maximum": 1e-300},
            },
        }
    )
    preview(generated(schema, 50), tmp_path)


def test_the_ledger_of_these_tests_spends_what_it_says():
    assert generated(TABLE, 3).epsilon == pytest.approx(0.9, abs=0.1)
    assert ledger().draws == 1
