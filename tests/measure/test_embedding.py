"""Noisy moments: the sums are those of the definition, and one record moves them by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from limbeck.features.places import BINS, Places, edges_of

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.features.conv_ntk import ConvNTK
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier
from limbeck.features.mixed import Mixed, columns_of
from limbeck.measure import moments
from limbeck.privacy import noise
from limbeck.privacy.accounting import calibrate
from limbeck.privacy.budget import Adjacency, Budget, Measurement
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import entropy

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
}


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


@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS.keys())
@pytest.mark.parametrize("value", [np.nan, np.inf, -1e8, 1e8, 1e160, 1.7e308, 1e-310])
def test_a_record_adds_a_vector_of_norm_one_at_most_whatever_it_holds(phi, value):
    """No encoder makes such numbers; if one did, neither sum nor bound would suffer."""
    rows = np.random.default_rng(0).random((4, 4))
    rows[1, 1], rows[2] = value, value

    def total(*kept):
        with jax.enable_x64(True):
            mask = jnp.asarray([row in kept for row in range(4)])
            return np.asarray(moments.clipped_sum(phi, jnp.asarray(rows), mask))

    for row in (1, 2):
        moved = np.linalg.norm(total(0, row, 3) - total(0, 3))
        assert moved <= moments.CLIP.record_norm + 1e-12
        assert moved < 1e-12 or np.isfinite(value)


@pytest.fixture
def bare(monkeypatch):
    """What would be noised, instead of it."""
    seen = {}

    def gaussian(bounded, *, purpose, ledger, entropy):
        seen[purpose] = bounded
        ledger.charge(purpose, sampling_probability=bounded.sampling_probability)
        return bounded.value

    monkeypatch.setattr(noise, "gaussian", gaussian)
    return seen


def measured(private, phi, budget=None):
    plan = [
        Measurement(purpose=moments.EMBEDDING),
        Measurement(purpose=moments.COUNTS, share=0.01),
    ]
    ledger = Ledger(calibrate(plan, budget or Budget(epsilon=1.0, delta=1e-5)))
    return moments.measure(private, phi, ledger=ledger, entropy=entropy(0)), ledger


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
def test_sums_and_counts_are_those_of_the_classes(phi):
    x, y = encoded()
    found, _ = measured(private_of(x, y), phi)
    features = np.asarray(phi(x), np.float64)
    for label in range(3):
        np.testing.assert_allclose(
            found.sums[label], features[y == label].sum(axis=0), rtol=1e-4, atol=1e-4
        )
    np.testing.assert_array_equal(found.counts, np.bincount(y))


@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
def test_one_record_moves_the_sums_by_one(phi, bare):
    x, y = encoded()
    measured(private_of(x, y), phi)
    whole = dict(bare)
    for gone in (0, 1, 4500, 8999):
        kept = np.arange(len(y)) != gone
        measured(private_of(x[kept], y[kept]), phi)
        for purpose, bounded in whole.items():
            moved = np.linalg.norm(bounded.value - bare[purpose].value)
            assert 0.999 < moved <= bounded.record_norm
            assert bounded.l2_sensitivity(Adjacency.ADD_REMOVE) == bounded.record_norm
            assert bounded.l2_sensitivity(Adjacency.REPLACE) == 2 * bounded.record_norm


@pytest.mark.parametrize("phi", MAPS.values(), ids=MAPS)
def test_a_record_gives_the_same_wherever_it_stands(phi):
    """To the last bit: others must not be rounded, or pass a kink, otherwise when one is gone."""
    x, _ = encoded(moments.AT_A_TIME)
    found = []
    for place in (0, 1, 7, 8, 100, 511):
        moved, mask = np.roll(x, place, axis=0), np.arange(len(x)) == place
        with jax.enable_x64(True):
            rows = jnp.asarray(moved, jnp.float64)
            found.append(np.asarray(moments.clipped_sum(phi, rows, jnp.asarray(mask))))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_a_record_that_is_no_number_is_left_out():
    x, _ = encoded(4)
    x[2, 0] = np.nan
    with jax.enable_x64(True):
        rows = jnp.asarray(x, jnp.float64)
        for phi in MAPS.values():
            found = moments.clipped_sum(phi, rows, jnp.array([True, False, True, False]))
            alone = moments.clipped_sum(phi, rows, jnp.array([True, False, False, False]))
            np.testing.assert_array_equal(found, alone)


def test_the_noise_is_what_the_exact_analysis_of_one_gaussian_asks_for():
    """σ = 3.73 at ε = 1, δ = 1e-5 alone; a hundredth of the budget for the counts is little."""
    _, ledger = measured(private_of(*encoded()), MAPS["fourier"])
    by_purpose = {entry.purpose: entry.noise_multiplier for entry in ledger.entries}
    assert by_purpose[moments.EMBEDDING] == pytest.approx(3.73 * np.sqrt(1.01), abs=0.01)
    assert by_purpose[moments.COUNTS] == pytest.approx(10 * by_purpose[moments.EMBEDDING], rel=1e-6)


def test_two_draws_are_made_and_charged(monkeypatch):
    drawn = []
    plain = noise.standard_normal
    monkeypatch.setattr(
        noise, "standard_normal", lambda e, shape: drawn.append(shape) or plain(e, shape)
    )
    _, ledger = measured(private_of(*encoded()), MAPS["fourier"])
    assert drawn == [(3, MAPS["fourier"].size), (1, 3)]
    assert sum(entry.draws for entry in ledger.entries) == 2


def counted(private):
    plan = [Measurement(purpose=moments.HISTOGRAMS)]
    ledger = Ledger(calibrate(plan, Budget(epsilon=1.0, delta=1e-5)))
    columns, edges = (0, 3), edges_of(SCHEMA)
    return moments.histograms(private, columns, edges, ledger=ledger, entropy=entropy(0)), ledger


def test_histograms_count_and_one_record_moves_them_by_the_root_of_the_columns(bare):
    x, y = encoded()
    x[:50, 0], x[50:60, 0] = 0, 1
    whole, ledger = counted(private_of(x, y))
    assert whole.shape == (2, BINS)
    assert (whole[0, 0], whole[0, -1], whole[0].sum()) == (50, 10, 9000)
    assert [entry.purpose for entry in ledger.entries] == [moments.HISTOGRAMS]
    for gone in (0, 55, 8999):
        kept = np.arange(len(y)) != gone
        less, _ = counted(private_of(x[kept], y[kept]))
        assert np.linalg.norm(whole - less) == pytest.approx(2**0.5)
        assert bare[moments.HISTOGRAMS].record_norm == pytest.approx(2**0.5)


@pytest.mark.usefixtures("bare")
def test_sums_are_of_places_where_there_are_some():
    x, y = encoded()
    at = [np.linspace(0, 1, BINS + 1) ** 0.5] * 2
    places = Places((0, 3), edges_of(SCHEMA), at)
    phi = MAPS["fourier"]
    plan = [Measurement(purpose=purpose) for purpose in (moments.EMBEDDING, moments.COUNTS)]
    ledger = Ledger(calibrate(plan, Budget(epsilon=1.0, delta=1e-5)))
    found = moments.measure(private_of(x, y), phi, places, ledger=ledger, entropy=entropy(0))
    features = np.asarray(phi(places.of(x).astype(np.float32)), np.float64)
    np.testing.assert_allclose(found.sums[1], features[y == 1].sum(axis=0), rtol=1e-4, atol=1e-3)
    plain, _ = measured(private_of(x, y), phi)
    assert np.abs(plain.sums - found.sums).max() > 10


def test_noise_hides_the_sums():
    """The deviation of 36 normal numbers is within 40% of what it should be, but for 1 in 500."""
    x, y = encoded()
    phi = MAPS["fourier"]
    found, ledger = measured(private_of(x, y), phi)
    exact = np.stack([np.asarray(phi(x[y == label])).sum(axis=0) for label in range(3)])
    sigma = ledger.entries[0].noise_multiplier
    assert np.std(found.sums - exact) == pytest.approx(sigma, rel=0.4)
