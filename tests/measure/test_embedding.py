"""Class-wise sums of features: those of the definition, and one record moves them by one."""

import numpy as np
import pytest

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.features.conv_ntk import ConvNTK
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier
from limbeck.features.mixed import Mixed, columns_of
from limbeck.features.quantiles import BINS, QuantileMap, edges_of, thresholds_of
from limbeck.measure.contributions.counts import Histograms
from limbeck.measure.contributions.embedding import EMBEDDING, embedding_sum
from limbeck.measure.rows import read
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run
from limbeck.privacy.sampling import Sample

SCHEMA = Schema(
    classes=(0, 1, 2),
    columns=(
        Column("a", "numeric", minimum=0, maximum=1),
        Column("b", "categorical", values=("x", "y")),
        Column("c", "numeric", minimum=0, maximum=1),
    ),
)
COLUMNS = columns_of(SCHEMA)
MAPS = {
    "e-ntk": Mixed(columns=COLUMNS, inner=DenseNTK(dimension=2, widths=(6, 5))),
    "e-ntk of columns": Mixed(columns=COLUMNS, inner=ConvNTK(dimension=2, channels=3, width=4)),
    "fourier": Mixed(columns=COLUMNS, inner=Fourier(dimension=2, count=5, length_scale=1)),
    "plain e-ntk": DenseNTK(dimension=4, widths=(7,)),
    "plain fourier": Fourier(dimension=4, count=5, length_scale=1),
}
every_map = pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)


def encoded(n=9000, seed=0):
    """Class 2 is rare, and missing from most batches."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.random(n), np.eye(2)[rng.integers(0, 2, n)], rng.random(n)])
    y = rng.integers(0, 2, n)
    y[:3] = 2
    return x.astype(np.float32), y


def private_of(x, y):
    import pandas as pd

    frame = pd.DataFrame({"a": x[:, 0], "b": np.where(x[:, 1] > 0, "x", "y"), "c": x[:, 3]})
    return limbeck.PrivateData.from_frame(frame.assign(label=y), SCHEMA)


def run_of(purpose):
    return Run(Plan(measurements=(Measurement(purpose=purpose),)), Budget(epsilon=1.0), seed=0)


def exact(private, contribution, public=None):
    """What would be noised, in the units of the records."""
    total = read(private, run_of(EMBEDDING)).total(contribution, public, Sample(None, 1.0))
    return np.asarray(total, np.float64) * contribution.grid


@every_map
def test_sums_are_those_of_the_classes(phi):
    """But for rounding towards zero, of a millionth to a thousandth of a feature's size."""
    x, y = encoded()
    sums = exact(private_of(x, y), embedding_sum(phi, 3), QuantileMap())
    features = np.asarray(phi(x), np.float64)
    for label in range(3):
        expected = features[y == label].sum(axis=0)
        assert np.linalg.norm(sums[label] - expected) < 2e-3 * np.linalg.norm(expected)


@every_map
def test_one_record_moves_the_sums_by_one(phi):
    x, y = encoded()
    contribution = embedding_sum(phi, 3)
    whole = exact(private_of(x, y), contribution, QuantileMap())
    for gone in (0, 1, 4500, 8999):
        kept = np.arange(len(y)) != gone
        moved = whole - exact(private_of(x[kept], y[kept]), contribution, QuantileMap())
        assert 0.99 < np.linalg.norm(moved) <= contribution.l2_bound * contribution.grid


def test_histograms_count_and_one_record_moves_them_by_the_root_of_the_columns():
    x, y = encoded()
    x[:50, 0], x[50:60, 0] = 0, 1
    contribution = Histograms((0, 3), tuple(thresholds_of(its) for its in edges_of(SCHEMA)))
    whole = exact(private_of(x, y), contribution)
    assert whole.shape == (2, BINS)
    assert (whole[0, 0], whole[0, -1], whole[0].sum()) == (50, 10, 9000)
    for gone in (0, 55, 8999):
        kept = np.arange(len(y)) != gone
        less = exact(private_of(x[kept], y[kept]), contribution)
        assert np.linalg.norm(whole - less) == pytest.approx(2**0.5)
        assert contribution.l2_bound == pytest.approx(2**0.5)


def test_sums_are_of_quantiles_where_there_are_some():
    x, y = encoded()
    quantiles = QuantileMap((0, 3), edges_of(SCHEMA), [np.linspace(0, 1, BINS + 1) ** 0.5] * 2)
    phi = MAPS["fourier"]
    sums = exact(private_of(x, y), embedding_sum(phi, 3), quantiles)
    features = np.asarray(phi(quantiles.forward(x).astype(np.float32)), np.float64)
    np.testing.assert_allclose(sums[1], features[y == 1].sum(axis=0), rtol=1e-4, atol=1e-3)
    plain = exact(private_of(x, y), embedding_sum(phi, 3), QuantileMap())
    assert np.abs(plain - sums).max() > 10


def test_noise_hides_the_sums():
    """The deviation of 36 normal numbers is within 40% of what it should be, but for 1 in 500."""
    private, contribution = private_of(*encoded()), embedding_sum(MAPS["fourier"], 3)
    run = run_of(EMBEDDING)
    noisy = run.sum(read(private, run), contribution, QuantileMap(), purpose=EMBEDDING)
    noise = noisy - exact(private, contribution, QuantileMap())
    assert np.std(noise) == pytest.approx(run.deviation(EMBEDDING, contribution), rel=0.4)
    assert run.noise_multiplier(EMBEDDING) == pytest.approx(3.73, abs=0.01)
