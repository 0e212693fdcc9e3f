"""A bundle says what it is, keeps what it says, and is written whole or not at all."""

import dataclasses
import json
import re
import shutil
import stat

import dp_accounting
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from dp_accounting import pld

import limbeck as lb
from limbeck.data import arrays
from limbeck.release import preview

ROWS = 331  # a number that nothing else here has

TABLE = lb.Schema.loads(
    """
    [label]
    name = "ill"
    classes = ["no", "yes"]
    [columns.age]
    kind = "integer"
    minimum = 0
    maximum = 100
    [columns.dose]
    kind = "numeric"
    minimum = 0
    maximum = 10
    [columns.ward]
    kind = "categorical"
    values = ["north", "south"]
    """
)
PICTURES = lb.Schema.loads(
    f"rows = {ROWS}\n[label]\nclasses = [3, 7]\n[image]\nheight = 6\nwidth = 5"
)


def patients():
    draw = np.random.default_rng(0)
    age = draw.integers(0, 101, ROWS)
    return pd.DataFrame(
        {
            "age": age,
            "dose": draw.uniform(0, 10, ROWS),
            "ward": draw.choice(["north", "south"], ROWS),
            "ill": np.where(age > 50, "yes", "no"),
        }
    )


def pictures():
    draw = np.random.default_rng(0)
    return draw.integers(0, 256, (ROWS, 6, 5), dtype=np.uint8), draw.choice([3, 7], ROWS)


@pytest.fixture(scope="module")
def table():
    """Two noisy sums over half of the patients each."""
    private = lb.PrivateData.from_frame(patients(), TABLE)
    method = lb.DPKIP(per_class=1, epochs=1, sampling_rate=0.5)
    return method.fit(private, lb.Budget(epsilon=1.0))


@pytest.fixture(scope="module")
def images():
    """One noisy sum over all pictures, between data sets that differ in one of them."""
    private = lb.PrivateData.from_arrays(*pictures(), PICTURES)
    method = lb.DPKIP(per_class=2, epochs=1, sampling_rate=1.0)
    return method.fit(private, lb.Budget(epsilon=2.0, delta=1e-6, adjacency=lb.Adjacency.REPLACE))


@pytest.fixture(params=["table", "images"])
def bundle(request):
    return request.getfixturevalue(request.param)


def new_rows(bundle):
    return pictures()[0] if bundle.schema.is_image else patients().drop(columns="ill")


def release_json(folder):
    return json.loads((folder / "release.json").read_text())


# What it holds


def test_what_is_saved_is_what_is_loaded(bundle, tmp_path):
    loaded = lb.load(bundle.save(tmp_path / "out"))
    for field in dataclasses.fields(bundle):
        kept, read = getattr(bundle, field.name), getattr(loaded, field.name)
        if isinstance(kept, np.ndarray):
            assert kept.dtype == read.dtype == np.float32
            np.testing.assert_allclose(read, kept, rtol=3e-7, err_msg=field.name)
        else:
            assert read == kept, field.name
    np.testing.assert_array_equal(loaded.y, bundle.y)
    assert loaded.statement() == bundle.statement()


def test_a_method_is_made_again_from_its_settings(table):
    assert lb.DPKIP(**table.settings) == lb.DPKIP(per_class=1, epochs=1, sampling_rate=0.5)


def test_a_frame_has_original_units_the_label_and_a_weight_a_class(table):
    frame = table.to_frame()
    assert frame.columns.tolist() == ["age", "dose", "ward", "ill", "ill=no", "ill=yes"]
    assert frame["age"].dtype.kind == "i"
    assert frame["age"].between(0, 100).all()
    assert frame["dose"].between(0, 10).all()
    assert frame["ward"].isin(["north", "south"]).all()
    assert frame["ill"].tolist() == ["no", "yes"]
    assert frame[["ill=no", "ill=yes"]].to_numpy().tolist() == [[1, 0], [0, 1]]


def test_a_frame_of_pictures_has_a_column_a_pixel(images):
    frame = images.to_frame()
    assert frame.shape == (4, 6 * 5 + 1 + 2)
    assert frame["label"].tolist() == [3, 3, 7, 7]
    np.testing.assert_array_equal(frame["pixel_5_4"], images.x[:, 5, 4])
    np.testing.assert_allclose(frame[["label=3", "label=7"]].sum(axis=1), 1)


def test_encoding_the_frame_gives_the_points_back_within_the_domain(table):
    from limbeck.data.encode import encode_rows

    numbers = encode_rows(TABLE, table.to_frame())[:, :2]
    np.testing.assert_allclose(numbers, np.clip(table.points[:, :2], 0, 1), atol=0.5 / 100)


def test_the_classifier_answers_in_classes_and_the_same_after_loading(bundle, tmp_path):
    rows = new_rows(bundle)
    predicted = bundle.classifier().predict(rows)
    assert predicted.shape == (ROWS,)
    assert set(predicted) <= set(bundle.schema.classes)
    loaded = lb.load(bundle.save(tmp_path / "out")).classifier()
    np.testing.assert_allclose(loaded.scores(rows), bundle.classifier().scores(rows), atol=1e-4)
    assert np.mean(loaded.predict(rows) == predicted) > 0.99


def test_the_classifier_reproduces_the_labels_of_the_points(images):
    """With little regularisation, kernel ridge regression interpolates."""
    ridge = images.classifier().ridge
    k = np.asarray(ridge.kernel.matrix(ridge.support, ridge.support))
    np.testing.assert_allclose(k @ ridge.alpha + 0.5, images.y_soft, atol=0.01)


def test_the_classifier_wants_the_columns_of_the_schema(table):
    with pytest.raises(lb.UserError, match="no column 'dose'"):
        table.classifier().predict(patients().drop(columns="dose"))


# What it promises


def test_the_stated_epsilon_follows_from_the_events_in_the_file(bundle, tmp_path):
    privacy = release_json(bundle.save(tmp_path / "out"))["privacy"]
    relation = {
        "add-remove": dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace": dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[privacy["budget"]["adjacency"]]
    accountant = pld.PLDAccountant(relation)
    for event in privacy["events"]:
        draw = dp_accounting.GaussianDpEvent(event["noise_multiplier"])
        if event["sampling_probability"] < 1:
            draw = dp_accounting.PoissonSampledDpEvent(event["sampling_probability"], draw)
        accountant.compose(draw, event["draws"])
    spent = accountant.get_epsilon(privacy["budget"]["delta"])
    assert privacy["epsilon"] == pytest.approx(spent, rel=1e-9)
    assert privacy["budget"]["epsilon"] - 1e-3 < spent <= privacy["budget"]["epsilon"]


def test_the_events_are_those_of_the_method(table, images):
    assert [(e.purpose, e.draws, e.sampling_probability) for e in table.events] == [
        ("gradient", 2, 0.5)
    ]
    assert [(e.purpose, e.draws, e.sampling_probability) for e in images.events] == [
        ("gradient", 1, 1.0)
    ]


def test_the_statement_never_rounds_epsilon_down(table):
    said = dataclasses.replace(table, epsilon=0.999911).statement()
    assert "(ε = 0.99992, δ" in said
    said = dataclasses.replace(table, epsilon=123.4561).statement()
    assert "(ε = 123.46, δ" in said


def test_warnings_come_before_the_promise(table):
    drafted = dataclasses.replace(TABLE, drafted=True)
    lines = dataclasses.replace(table, schema=drafted, seeded=True).statement().splitlines()
    assert lines[0].startswith("SEEDED: NOT FOR RELEASE")
    assert lines[1].startswith("WARNING: the schema")
    lines = dataclasses.replace(table, schema=drafted).statement().splitlines()
    assert lines[0].startswith("WARNING: the schema")
    assert "differentially private" in lines[1]
    without = dataclasses.replace(table, budget=None, epsilon=float("inf")).statement()
    assert without.startswith("NOT PRIVATE")


# What it keeps to itself


def everything_readable(folder):
    """The bytes of every file, as they are and unpacked."""
    held = [path.read_bytes() for path in folder.iterdir()]
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        held += [data[name].tobytes() for name in data.files]
    if (folder / "data.parquet").exists():
        held += [
            c.to_numpy().tobytes() for _, c in pd.read_parquet(folder / "data.parquet").items()
        ]
    return b"\n".join(held)


def test_no_private_dose_is_in_any_file(table, tmp_path):
    held = everything_readable(table.save(tmp_path / "out"))
    assert table.points.tobytes() in held  # the search finds what is there
    for dose in patients()["dose"]:
        traces = (dose, dose / 10, dose / 5 - 1)  # as given, as encoded, as the kernel sees it
        for trace in map(np.float64, traces):
            assert trace.tobytes() not in held
            assert repr(float(trace)).encode() not in held


def test_no_private_row_is_among_the_points(table):
    from limbeck.data.encode import encode_rows

    held = table.points.tobytes()
    assert not [row for row in encode_rows(TABLE, patients()) if row.tobytes() in held]


def test_no_private_picture_is_in_any_file(images, tmp_path):
    held = everything_readable(images.save(tmp_path / "out"))
    assert images.x.tobytes() in held
    for picture in pictures()[0]:
        grey = picture.astype(np.float32)
        for trace in (picture, grey, grey / np.float32(255)):
            assert trace.tobytes() not in held


def numbers_in(value):
    if isinstance(value, dict):
        return {n for inner in value.values() for n in numbers_in(inner)}
    if isinstance(value, list):
        return {n for inner in value for n in numbers_in(inner)}
    return {value} if isinstance(value, int | float) else set()


def test_the_row_count_is_told_only_where_it_is_public(table, images, tmp_path):
    private, public = table.save(tmp_path / "private"), images.save(tmp_path / "public")
    assert ROWS in numbers_in(release_json(public))
    assert ROWS not in numbers_in(release_json(private))
    alone = rf"(?<![\d.]){ROWS}(?![\d.])"
    for name in ("README.md", "release.json"):
        assert not re.search(alone, (private / name).read_text())
    assert "The number of rows is protected" in (private / "README.md").read_text()


# How it is written


class DiskFullError(RuntimeError):
    pass


@pytest.fixture
def failing_preview(monkeypatch):
    """The last file of a bundle cannot be written."""

    def fail(bundle, path):
        path.write_bytes(b"half a pic")
        raise DiskFullError

    monkeypatch.setattr(preview, "draw", fail)


def contents(folder):
    return {
        path.relative_to(folder): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.mark.usefixtures("failing_preview")
def test_a_failure_half_way_leaves_nothing(table, tmp_path):
    with pytest.raises(DiskFullError):
        table.save(tmp_path / "out")
    assert contents(tmp_path) == {}


def test_a_failure_half_way_leaves_the_old_bundle(table, images, tmp_path, request):
    images.save(tmp_path / "out")
    before = contents(tmp_path)
    request.getfixturevalue("failing_preview")
    with pytest.raises(DiskFullError):
        table.save(tmp_path / "out", overwrite=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_failure_at_the_last_rename_brings_the_old_bundle_back(
    table, images, tmp_path, monkeypatch, failure
):
    folder = images.save(tmp_path / "out")
    before = contents(tmp_path)
    rename = type(folder).rename

    def fail_for_the_new_one(self, target):
        if self.name == "new":
            raise failure
        return rename(self, target)

    monkeypatch.setattr(type(folder), "rename", fail_for_the_new_one)
    with pytest.raises((lb.UserError, KeyboardInterrupt)):
        table.save(folder, overwrite=True)
    assert contents(tmp_path) == before


def test_an_old_bundle_is_replaced_as_a_whole(table, images, tmp_path):
    table.save(tmp_path / "out")
    images.save(tmp_path / "out", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not (tmp_path / "out" / "data.parquet").exists()
    assert lb.load(tmp_path / "out").schema == PICTURES


def test_what_is_in_the_way_is_not_replaced_unasked(table, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(lb.UserError, match="exists"):
        table.save(tmp_path / "out")
    with pytest.raises(lb.UserError, match="not a bundle"):
        table.save(tmp_path / "out", overwrite=True)


def test_a_disk_error_is_told_in_one_line(table, tmp_path, monkeypatch):
    def fail(bundle, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preview, "draw", fail)
    with pytest.raises(lb.UserError, match=r"cannot be written \(No space left"):
        table.save(tmp_path / "out")
    assert contents(tmp_path) == {}


def test_others_may_read_it_and_it_loads_without_pickles(table, tmp_path):
    folder = table.save(tmp_path / "out")
    assert stat.S_IMODE(folder.stat().st_mode) & 0o055 == 0o055
    with np.load(folder / "data.npz", allow_pickle=False) as data:
        assert data["y"].tolist() == ["no", "yes"]


# How it is read when something is wrong


def change_json(**changed):
    def damage(folder):
        release = {**release_json(folder), **changed}
        (folder / "release.json").write_text(json.dumps(release))

    return damage


def change_file(name, change):
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def change_arrays(**changed):
    return lambda folder: np.savez(folder / "data.npz", **changed)


DAMAGE = {
    "release.json is missing": (lambda f: (f / "release.json").unlink(), "no release.json"),
    "data.npz is missing": (lambda f: (f / "data.npz").unlink(), "no data.npz"),
    "release.json is cut": (change_file("release.json", lambda b: b[:100]), "damaged"),
    "release.json is binary": (change_file("release.json", lambda b: b"\xff" + b), "damaged"),
    "release.json is a list": (change_file("release.json", lambda b: b"[1]"), "damaged"),
    "release.json is empty": (change_file("release.json", lambda b: b"{}"), "damaged"),
    "data.npz is cut": (change_file("data.npz", lambda b: b[: len(b) // 2]), "damaged"),
    "data.npz is empty": (change_file("data.npz", lambda b: b""), "damaged"),
    "data.npz is text": (change_file("data.npz", lambda b: b"hello, world"), "damaged"),
    "a flipped byte": (
        change_file("data.npz", lambda b: b[:70] + bytes([b[70] ^ 255]) + b[71:]),
        "damaged",
    ),
    "pickled points": (
        change_arrays(x=np.array([{}, {}], object), y_soft=np.eye(2, dtype=np.float32)),
        "damaged",
    ),
    "weights are missing": (change_arrays(x=np.zeros((2, 4), np.float32)), "damaged"),
    "weights of other points": (
        change_arrays(x=np.zeros((3, 4), np.float32), y_soft=np.eye(2, dtype=np.float32)),
        "damaged",
    ),
    "points of another schema": (
        change_arrays(x=np.zeros((2, 9), np.float32), y_soft=np.eye(2, dtype=np.float32)),
        "damaged",
    ),
    "another format": (change_json(format=99), "another version"),
    "no privacy": (change_json(privacy={}), "damaged"),
    "no model": (change_json(model=None), "damaged"),
    "no schema": (change_json(schema={"label": {"classes": [1]}}), "class"),
}


@pytest.fixture(scope="module")
def saved(table, tmp_path_factory):
    return table.save(tmp_path_factory.mktemp("saved") / "out")


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_bundle_is_refused_in_one_line(saved, tmp_path, what):
    damage, complaint = DAMAGE[what]
    shutil.copytree(saved, tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(lb.UserError, match=complaint) as caught:
        lb.load(tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_path_that_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(lb.UserError, match="not a bundle"):
            lb.load(path)


def test_a_delta_above_one_over_the_public_rows_is_warned_of(images):
    loose = dataclasses.replace(images.budget, delta=0.5)
    first = dataclasses.replace(images, budget=loose, seeded=False).statement().splitlines()[0]
    assert first.startswith("WARNING: δ = 0.5 is more than one over")
    assert "WARNING: δ" not in images.statement()


# A seeded bundle


@pytest.fixture
def seeded(bundle, tmp_path):
    return dataclasses.replace(bundle, seeded=True).save(tmp_path / "seeded")


def test_a_seeded_bundle_promises_nothing(bundle, seeded):
    said = release_json(seeded)["privacy"]["statement"]
    assert "the noise is predictable from the seed, so no privacy is promised" in said.lower()
    for text in (said, (seeded / "README.md").read_text()):
        assert "NOT FOR RELEASE" in text
        for claim in ("differentially private", "covered", "not records of anybody"):
            assert claim not in text


def test_every_data_file_of_a_seeded_bundle_is_stamped(bundle, seeded, tmp_path):
    fine = bundle.save(tmp_path / "fine")
    for folder, stamped in ((fine, False), (seeded, True)):
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            assert ("not_for_release" in data.files) is stamped
        if not bundle.schema.is_image:
            metadata = pq.read_schema(folder / "data.parquet").metadata
            assert (b"not_for_release" in metadata) is stamped
    assert (fine / "preview.png").read_bytes() != (seeded / "preview.png").read_bytes()
    assert lb.load(seeded).seeded


# A bundle of a stranger


def change_privacy(**changed):
    def damage(folder):
        release = release_json(folder)
        release["privacy"].update(changed)
        (folder / "release.json").write_text(json.dumps(release))

    return damage


def test_a_smaller_epsilon_than_the_events_add_up_to_is_refused(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "out")
    stated = release_json(saved)["privacy"]["epsilon"]
    change_privacy(epsilon=stated + 0.1)(tmp_path / "out")
    assert lb.load(tmp_path / "out").epsilon == stated + 0.1
    for less in (stated - 1e-6, 0.01):
        change_privacy(epsilon=less)(tmp_path / "out")
        with pytest.raises(lb.UserError, match=r"states epsilon=.* add up to epsilon="):
            lb.load(tmp_path / "out")


def test_a_stated_budget_does_not_cover_a_look_without_noise(saved, tmp_path):
    shutil.copytree(saved, tmp_path / "out")
    events = release_json(saved)["privacy"]["events"]
    change_privacy(events=[{**events[0], "noise_multiplier": None}])(tmp_path / "out")
    with pytest.raises(lb.UserError, match=r"states epsilon=.* add up to epsilon="):
        lb.load(tmp_path / "out")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "UNSUSPICIOUS", 2**10)
    shutil.copytree(saved, tmp_path / "out")
    np.savez_compressed(tmp_path / "out" / "data.npz", x=np.zeros(10**8, np.uint8))
    with pytest.raises(lb.UserError, match="zip bomb"):
        lb.load(tmp_path / "out")


def test_our_own_errors_are_not_taken_for_damage(saved, monkeypatch):
    def fail(schema):
        raise TypeError("a bug")

    monkeypatch.setattr(lb.Schema, "from_dict", fail)
    with pytest.raises(TypeError, match="a bug"):
        lb.load(saved)
