"""QuantileMap among a histogram: rising, and back to where they came from."""

import numpy as np
import pytest

from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.features.quantiles import BINS, QuantileMap, edges_of, quantiles_of, thresholds_of

FEW = Column("children", "integer", minimum=0, maximum=9)
MANY = Column("income", "integer", minimum=0, maximum=99_999)
REAL = Column("weight", "numeric", minimum=-10, maximum=10)
RANKS = Column("grade", "ordinal", values=("low", "middle", "high"))


def edges_for(column):
    (edges,) = edges_of(Schema(classes=(0, 1), columns=(column, Column("smokes", "boolean"))))
    return edges


def bins_of(x, edges):
    return np.searchsorted(thresholds_of(edges), x, side="right")


def places(column, x):
    """By the exact histogram of `x`."""
    edges = edges_for(column)
    counts = np.bincount(bins_of(x, edges), minlength=len(edges) - 1)
    return QuantileMap((0,), (edges,), (quantiles_of(counts, 0.0, len(x)),))


def there_and_back(column, x):
    found = places(column, x)
    at = found.forward(x[:, None])
    return at[:, 0], found.inverse(at)[:, 0]


def test_whole_numbers_and_ranks_have_a_bin_each_others_their_bounds():
    assert len(edges_for(FEW)) == 11
    assert len(edges_for(RANKS)) == 4
    np.testing.assert_array_equal(bins_of(np.linspace(0, 1, 10), edges_for(FEW)), np.arange(10))
    for column in (MANY, REAL):
        assert len(edges_for(column)) == BINS + 1
        found = bins_of(np.array([0, 1e-9, 0.5, 1 - 1e-9, 1]), edges_for(column))
        np.testing.assert_array_equal(found, [0, 1, 128, BINS - 2, BINS - 1])


@pytest.mark.parametrize("column", [FEW, MANY, REAL])
def test_places_rise_with_the_numbers_and_lead_back(column):
    rng = np.random.default_rng(0)
    x = np.sort(rng.beta(1, 9, 3000))
    if column is FEW:
        x = np.rint(9 * x) / 9
    x[:100] = 0
    at, back = there_and_back(column, x)
    assert (np.diff(at) >= 0).all()
    assert 0 <= at.min() <= at.max() <= 1
    np.testing.assert_allclose(back, x, atol=1e-6)


@pytest.mark.parametrize("column", [FEW, MANY, REAL])
def test_from_every_place_in_its_bin_the_way_back_is_to_a_common_value(column):
    x = np.concatenate([np.zeros(900), np.linspace(0.3, 0.9, 100)])
    found = places(column, x)
    width = found.at[0][1]
    assert width > 0.1
    back = found.inverse(np.linspace(0, width - 1e-6, 50)[:, None])[:, 0]
    whole = np.rint(9 * back) if column is FEW else back
    np.testing.assert_array_equal(whole, 0)


def test_skewed_numbers_are_spread():
    x = np.random.default_rng(0).exponential(0.01, 20_000).clip(0, 1)
    at, _ = there_and_back(MANY, x)
    assert np.std(x) < 0.02
    assert np.std(at) > 0.1


def test_noise_alone_leaves_the_scale_even():
    noise = np.random.default_rng(0).normal(0, 50, 10)
    for rows in (600, -600):
        np.testing.assert_allclose(quantiles_of(noise, 50.0, rows), np.linspace(0, 1, 11))


def test_json_is_read_back():
    found = places(FEW, np.linspace(0, 1, 10))
    again = QuantileMap(**found.to_json())
    x = np.linspace(0, 1, 30)[:, None]
    np.testing.assert_array_equal(again.forward(x), found.forward(x))
