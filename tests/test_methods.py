"""What every method must do: the common suite over `METHODS`."""

import dataclasses
import functools
import inspect
import json
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.generate.g_pate import PAPER
from limbeck.method import BUILT_IN, fields, find
from limbeck.privacy import noise
from limbeck.privacy.accounting import epsilon
from limbeck.privacy.budget import Adjacency, Budget
from limbeck.release.bundle import Generated

BUDGET = Budget(epsilon=2.0, delta=1e-5)
METHODS = {name: find(name) for name in BUILT_IN}
PRIVATE = [name for name, row in METHODS.items() if row.private]

# The smallest setting that takes each method through all of its steps.
SMALL = {
    "readout": {"per_class": 2, "steps": 3, "restarts": 1},
    "dp-kip": {"per_class": 2, "epochs": 1.5, "sampling_rate": 0.5},
    "kip": {"per_class": 2, "steps": 3, "sampling_rate": 0.5, "label_solve": True},
    "dp-ntk": {"records": 4, "steps": 2, "batch": 6, "widths": (7,)},
    "dp-merf": {"records": 4, "steps": 2, "batch": 6, "frequencies": 9},
    "dp-hp": {"records": 4, "steps": 2, "batch": 6, "order": 3},
    "dp-gan": {"records": 4, "steps": 2, "batch": 6, "critic_steps": 2, "sampling_rate": 0.5},
    "gan": {"records": 4, "steps": 2, "batch": 6, "sampling_rate": 0.5},
    "g-pate": {"records": 4, "steps": 2, "batch": 6, "teachers": 5, "student_steps": 2},
}
GENERATED = [name for name, row in METHODS.items() if row.command == "generate"]

# For pictures: the features, and where the gradients of DP-KIP may be clipped.
SCATTER = {"features": "scatter"}
WAYS = {
    "dp-kip, points": ("dp-kip", {}),
    "dp-kip, readout": ("dp-kip", {**SCATTER, "clip_in": "readout"}),
    "dp-kip, features": ("dp-kip", {**SCATTER, "clip_in": "features"}),
    "dp-kip, pixels": ("dp-kip", {**SCATTER, "clip_in": "pixels", "corrupt": 0.2}),
    "readout": ("readout", {}),
    "readout, scatter, hard": ("readout", {**SCATTER, "labels": "hard", "clip_to_domain": True}),
    "readout, fc-ntk": ("readout", {"features": "fc-ntk", "smoothness": 0.1}),
    "dp-ntk": ("dp-ntk", {}),
    "dp-ntk, two layers": ("dp-ntk", {"widths": (6, 5)}),
    "dp-merf": ("dp-merf", {}),
    "dp-merf, labelled": ("dp-merf", {"label_with": "readout"}),
    "dp-hp": ("dp-hp", {}),
    "dp-gan": ("dp-gan", {}),
    "g-pate": ("g-pate", {}),
    "g-pate, as in the paper": ("g-pate", {**PAPER, "clip": 0.05, "updates": 5}),
}
# For tables.
TABLE_WAYS = {
    "dp-kip, adam": ("dp-kip", {}),
    "dp-kip, sgd": ("dp-kip", {"optimiser": "sgd"}),
    "dp-kip, bins": ("dp-kip", {"features": "bins"}),
    "readout, bins": ("readout", {}),
    "readout, fc-ntk": ("readout", {"features": "fc-ntk"}),
    "dp-ntk": ("dp-ntk", {}),
    "dp-ntk, cnn": ("dp-ntk", {"net": "cnn", "widths": (3, 5)}),
    "dp-merf": ("dp-merf", {}),
    "dp-hp": ("dp-hp", {}),
    "dp-gan": ("dp-gan", {}),
    "g-pate": ("g-pate", {}),
    "g-pate, as in the paper": ("g-pate", {**PAPER, "clip": 0.3, "updates": 5}),
}

TABLE = Schema(
    classes=("no", "yes"),
    columns=(
        Column("age", "integer", minimum=0, maximum=100),
        Column("dose", "numeric", minimum=0.0, maximum=5.0),
        Column("ward", "categorical", values=("a", "b", "c"), other="c"),
    ),
)
IMAGES = Schema(classes=(0, 1, 2), image=ImageShape(8, 8))


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "dose": rng.uniform(0, 5, n),
            "ward": rng.choice(["a", "b", "c"], n),
            "label": rng.choice(["no", "yes"], n),
        }
    )


def images(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 8, 8)), rng.integers(0, 3, n)


def table_data(frame=None):
    return limbeck.PrivateData.from_frame(rows() if frame is None else frame, TABLE)


def image_data(x=None, y=None):
    given = images() if x is None else (x, y)
    return limbeck.PrivateData.from_arrays(*given, IMAGES)


DATA = {"table": table_data, "images": image_data}


def method(name, **settings):
    return find(name)(**{**SMALL[name], **settings})


def has(name, setting):
    return setting in fields(find(name))


def everyone(name):
    """Every record in every step."""
    return {"sampling_rate": 1.0} if has(name, "sampling_rate") else {}


def one_of(name, positions, last=39):
    """Records to remove: the last, where records are shared out by position.

    The others then stay with their teachers. That they need not is in `teachers_of`.
    """
    return (last,) if has(name, "teachers") else positions


def with_ways(ways):
    return pytest.mark.parametrize(("name", "settings"), ways.values(), ids=ways)


def fit(name, private, seed=0, adjacency=Adjacency.ADD_REMOVE, **settings):
    budget = dataclasses.replace(BUDGET, adjacency=adjacency) if METHODS[name].private else None
    return method(name, **settings).fit(private, budget, seed=seed)


def test_every_method_has_a_small_setting_here():
    assert set(SMALL) == set(METHODS)
    for ways in (WAYS, TABLE_WAYS):
        assert {name for name, _ in ways.values()} == set(PRIVATE)


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_points_and_the_bundle_says_so(name, data):
    one, two = (fit(name, data()) for _ in range(2))
    np.testing.assert_array_equal(one.points, two.points)
    np.testing.assert_array_equal(one.y_soft, two.y_soft)
    assert one.seeded
    assert "NOT FOR RELEASE" in one.statement()


@pytest.mark.parametrize("name", METHODS)
def test_without_a_seed_no_two_runs_are_the_same(name):
    one, two = (fit(name, table_data(), seed=None) for _ in range(2))
    assert not one.seeded
    assert not np.array_equal(one.points, two.points)
    if name in GENERATED:  # which are rounded to records, and some columns have few values
        found = [bundle.generator.arrays["[0].layers[0].weight"] for bundle in (one, two)]
    else:  # points of a readout may lie on the first knot, or the last
        found = [bundle.y_soft if name == "readout" else bundle.points for bundle in (one, two)]
    assert not np.any(found[0] == found[1])


@pytest.mark.parametrize("name", METHODS)
def test_points_are_finite_and_balanced_over_the_declared_classes(name):
    """Also where the records have one class only: the schema decides, not the data."""
    frame = rows().assign(label="yes")
    bundle = fit(name, table_data(frame))
    assert np.isfinite(bundle.points).all()
    assert bundle.points.shape == (4, TABLE.width)
    if name == "dp-kip":
        assert list(bundle.y) == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize("adjacency", list(Adjacency), ids=lambda a: a.value)
@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_spent_is_what_was_promised(name, adjacency):
    bundle = fit(name, table_data(), adjacency=adjacency)
    spent = epsilon(bundle.events, BUDGET.delta, adjacency)
    assert bundle.epsilon == spent
    assert BUDGET.epsilon - 1e-3 <= spent <= BUDGET.epsilon


class Recorder:
    """Entropy that remembers what it gave."""

    def __init__(self, entropy):
        self.entropy, self.seeded, self.given = entropy, entropy.seeded, []

    def bytes(self, length):
        self.given.append(self.entropy.bytes(length))
        return self.given[-1]


@pytest.fixture
def drawn(monkeypatch):
    """The random bits of every draw of noise, in order; not those that the points start from."""
    draws = []

    def record(name):
        original = getattr(noise, name)

        @functools.wraps(original)
        def recorded(entropy, shape, scale):
            taken = Recorder(entropy)
            noise = original(taken, shape, scale)
            draws.append(np.frombuffer(b"".join(taken.given), np.uint64))
            assert len(draws[-1]) >= noise.size
            return noise

        monkeypatch.setattr(noise, name, recorded)

    record("rounded_gaussian")
    record("rounded_laplace")
    return draws


@with_ways(TABLE_WAYS)
def test_every_draw_of_noise_is_an_event_in_the_ledger(name, settings, drawn):
    bundle = fit(name, table_data(), **settings)
    assert len(drawn) == sum(event.draws for event in bundle.events)
    flat = np.concatenate([draw.ravel() for draw in drawn])
    assert len(np.unique(flat)) == len(flat), "random bits were used twice"


@with_ways(WAYS)
def test_so_it_is_for_pictures_and_the_ledger_holds(name, settings, drawn):
    bundle = fit(name, image_data(), **settings)
    assert len(drawn) == sum(event.draws for event in bundle.events)
    flat = np.concatenate([draw.ravel() for draw in drawn])
    assert len(np.unique(flat)) == len(flat), "random bits were used twice"
    assert epsilon(bundle.events, BUDGET.delta, BUDGET.adjacency) <= BUDGET.epsilon
    np.testing.assert_array_equal(bundle.points, fit(name, image_data(), **settings).points)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in PRIVATE])
def test_a_method_without_privacy_draws_no_noise_and_says_so(name, drawn):
    bundle = fit(name, table_data())
    assert not drawn
    assert np.isinf(bundle.epsilon)
    assert all(event.noise_multiplier is None for event in bundle.events)
    assert "NOT PRIVATE" in bundle.statement()


class Run(NamedTuple):
    seen: list
    answers: list
    bundle: limbeck.Bundle


@pytest.fixture
def measured(monkeypatch):
    """Runs a method; returns what was noised, draw by draw, the answers, and the bundle.

    Measurements may depend on earlier answers, and a record is held to its bound for every answer
    that there was. So a run can be given the answers of another, in place of its own.
    """
    originals = {name: getattr(noise, name) for name in ("gaussian", "laplace")}

    def run(name, private, given=None, **settings):
        seen, answers = [], []

        def record(mechanism):
            def recorded(bounded, *, purpose, **rest):
                answer = originals[mechanism](bounded, purpose=purpose, **rest)
                answers.append(answer if given is None else given[len(seen)])
                seen.append((purpose, bounded))
                return answers[-1].copy()

            monkeypatch.setattr(noise, mechanism, recorded)

        for mechanism in originals:
            record(mechanism)
        return Run(seen, answers, fit(name, private, **settings))

    return run


def assert_private(whole, other, adjacency):
    """Every statistic within its bound, and of all else in the bundle not a bit is different."""
    assert [purpose for purpose, _ in whole.seen] == [purpose for purpose, _ in other.seen]
    moved = {}
    for (purpose, bounded), (_, changed) in zip(whole.seen, other.seen, strict=True):
        assert bounded.value.shape == changed.value.shape
        assert bounded.l2_bound == changed.l2_bound
        assert bounded.grid == changed.grid
        by = np.linalg.norm(bounded.value - changed.value)
        assert by <= bounded.l2_sensitivity(adjacency), purpose
        moved.setdefault(purpose, by)
    assert moved
    assert min(moved.values()) > 0, "the record is in no statistic"
    assert contents(whole.bundle) == contents(other.bundle)


def contents(bundle):
    arrays = {"points": bundle.points, "labels": bundle.y_soft}
    config = None
    if isinstance(bundle, Generated):
        arrays, config = arrays | bundle.generator.arrays, bundle.generator.config
    return {name: array.tobytes() for name, array in arrays.items()}, config, bundle.events


@with_ways(TABLE_WAYS)
def test_removing_one_row_moves_no_statistic_by_more_than_its_sensitivity(name, settings, measured):
    settings = {**everyone(name), **settings}
    frame = rows()
    whole = measured(name, table_data(frame), **settings)
    for gone in one_of(name, (0, 17, 39)):
        without = measured(name, table_data(frame.drop(index=gone)), whole.answers, **settings)
        assert_private(whole, without, Adjacency.ADD_REMOVE)


@with_ways(WAYS)
def test_a_picture_moves_no_statistic_by_more_than_its_sensitivity(name, settings, measured):
    x, y = images()
    way = {**settings, **everyone(name), "adjacency": Adjacency.REPLACE}
    if has(name, "epochs"):
        way["epochs"] = 1.0
    whole = measured(name, image_data(x, y), **way)
    (at,) = one_of(name, (5,), last=39)
    fewer = image_data(np.delete(x, at, 0), np.delete(y, at))
    assert_private(whole, measured(name, fewer, whole.answers, **way), Adjacency.ADD_REMOVE)
    for picture in (np.zeros((8, 8), int), 255 * np.eye(8, dtype=int)):
        other_x, other_y = x.copy(), y.copy()
        other_x[at], other_y[at] = picture, (y[at] + 1) % 3
        replaced = measured(name, image_data(other_x, other_y), whole.answers, **way)
        assert_private(whole, replaced, Adjacency.REPLACE)


@pytest.mark.parametrize("name", PRIVATE)
def test_no_private_row_can_be_found_in_the_points(name):
    x, y = images()
    bundle = fit(name, image_data(x, y))
    records = x.reshape(len(x), -1) / 255
    centred = records - records.mean(axis=1, keepdims=True)
    points = bundle.points - bundle.points.mean(axis=1, keepdims=True)
    cosines = (points / np.linalg.norm(points, axis=1, keepdims=True)) @ (
        centred / np.linalg.norm(centred, axis=1, keepdims=True)
    ).T
    assert np.abs(cosines).max() < 0.8


@pytest.mark.parametrize("name", METHODS)
def test_empty_batches_and_a_single_record_are_no_special_case(name):
    extra = {"sampling_rate": 0.05, "epochs": 0.5}
    extra = {setting: value for setting, value in extra.items() if has(name, setting)}
    bundle = fit(name, table_data(rows(1)), **extra)
    assert np.isfinite(bundle.points).all()


@pytest.mark.parametrize("name", METHODS)
def test_settings_survive_json_and_are_frozen_and_keyword_only(name):
    config = method(name)
    again = type(config)(**json.loads(json.dumps(dataclasses.asdict(config))))
    assert again == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.per_class = 3
    with pytest.raises(TypeError):
        type(config)(3)


@pytest.mark.parametrize("name", METHODS)
def test_nothing_private_is_a_setting(name):
    """Private values are arguments of `fit`, never fields."""
    config = find(name)
    assert next(iter(inspect.signature(config.fit).parameters)) == "self"
    assert not {"private", "x", "y", "data"} & {f.name for f in dataclasses.fields(config)}


# For every method that has the setting.
WRONG = [
    {"per_class": 0},
    {"learning_rate": 0.0},
    {"learning_rate": float("nan")},
    {"sampling_rate": 0.0},
    {"sampling_rate": 1.5},
    {"batch": 0},
    {"regularisation": -1.0},
    {"optimiser": "newton"},
    {"schedule": "linear"},
    {"features": "nonsense"},
    {"start_scale": -1.0},
    {"clip_in": "nowhere"},
    {"corrupt": 1.0, "features": "scatter"},
    {"corrupt": -0.1, "features": "scatter"},
    {"corrupt": 0.1, "features": "fc-ntk"},
    {"labels": "fuzzy"},
    {"momentum": 1.0},
    {"averaged": 0},
    {"rate": "fast"},
    {"restarts": 0},
    {"critic_steps": 0},
    {"smoothness": -0.1},
    {"records": 0},
    {"steps": 0},
    {"latent_dim": 0},
    {"label_with": "a guess"},
    {"label_share": 0.0},
    {"widths": ()},
    {"widths": (8, 0)},
    {"frequencies": 0},
    {"order": 0},
    {"teachers": 0},
    {"votes_on": "nothing"},
    {"bins": 1},
    {"clip": "hair"},
    {"aggregate": "median"},
    {"threshold": -0.5},
    {"class_epsilon": 0.0},
    {"variation": 99},
]
WRONG_FOR = [(n, w) for w in WRONG for n in METHODS if has(n, next(iter(w)))]


@pytest.mark.parametrize(("name", "wrong"), WRONG_FOR, ids=str)
def test_a_wrong_setting_is_one_line_that_names_it(name, wrong):
    with pytest.raises(limbeck.UserError) as caught:
        method(name, **wrong)
    assert "\n" not in str(caught.value)
    assert next(iter(wrong)) in str(caught.value)


@pytest.mark.parametrize("name", [name for name in METHODS if has(name, "features")])
def test_features_of_images_are_refused_for_a_table(name):
    with pytest.raises(limbeck.UserError, match="features=scatter is for images"):
        fit(name, table_data(), **SCATTER)


def test_bins_are_refused_for_pictures():
    with pytest.raises(limbeck.UserError, match="features=bins is for tables"):
        fit("readout", image_data(), features="bins")


@pytest.mark.parametrize("name", ["dp-kip", "kip"])
def test_a_batch_size_needs_a_public_row_count(name):
    with pytest.raises(limbeck.UserError, match="keeps private"):
        fit(name, table_data(), batch=10)


@pytest.mark.parametrize("name", METHODS)
def test_rows_that_are_not_behind_the_wall_are_refused(name):
    class Loose:
        schema = TABLE

    with pytest.raises(TypeError, match="PrivateData"):
        fit(name, Loose())


@pytest.mark.parametrize("name", METHODS)
def test_each_method_has_a_page(name, request):
    assert (request.config.rootpath / METHODS[name].docs).is_file()
