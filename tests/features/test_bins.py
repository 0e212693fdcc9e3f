"""Bins: a linear readout of them is any piecewise linear function of a number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.features.base import features_of
from limbeck.features.bins import Bins, _hats, even_knots, knots_of, number_coordinates

KNOTS = (0.0, 0.1, 0.6, 1.0)


@pytest.mark.parametrize("value", [0.0, 0.03, 0.1, 0.35, 0.6, 0.99, 1.0])
def test_a_readout_of_the_weights_is_linear_interpolation(value):
    heights = np.array([3.0, -1.0, 2.0, 5.0])
    weights = np.asarray(_hats(jnp.array([[value]]), jnp.array([KNOTS])))[0, 0]
    assert weights @ heights == pytest.approx(np.interp(value, KNOTS, heights), abs=1e-5)
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    assert np.count_nonzero(weights > 1e-6) <= 2


def test_beyond_the_ends_nothing_changes():
    inside = _hats(jnp.array([[0.0], [1.0]]), jnp.array([KNOTS]))
    beyond = _hats(jnp.array([[-3.0], [7.0]]), jnp.array([KNOTS]))
    np.testing.assert_array_equal(inside, beyond)


def test_a_row_is_bias_categories_and_weights_of_unit_norm():
    phi = Bins(dimension=3, numbers=(1,), knots=((0.0, 0.5, 1.0),))
    found = features_of(phi, np.array([[1.0, 0.0, -1.0]], np.float32))  # 1, ½, 0 when encoded
    np.testing.assert_allclose(found[0] * np.sqrt(3), [1, 1, 0, 0, 1, 0], atol=1e-6)


def test_a_table_without_numbers_has_features_too():
    phi = Bins(dimension=2, numbers=(), knots=())
    assert features_of(phi, np.ones((5, 2), np.float32)).shape == (5, phi.size) == (5, 3)


def test_a_records_features_do_not_depend_on_where_it_stands():
    x = np.random.default_rng(0).uniform(-1, 1, (3000, 4)).astype(np.float32)
    phi = Bins(dimension=4, numbers=(0, 2), knots=(KNOTS, KNOTS))
    np.testing.assert_array_equal(features_of(phi, x[1:]), features_of(phi, x)[1:])


def test_slopes_are_finite_at_knots_and_beyond():
    phi = Bins(dimension=1, numbers=(0,), knots=(KNOTS,))
    slope = jax.grad(lambda x: jnp.sum(phi(x) ** 3))
    for value in (-5.0, -1.0, -0.8, 0.2, 1.0, 5.0):
        assert np.isfinite(slope(jnp.array([[value]]))).all()


def test_numbers_and_ranks_are_told_from_categories():
    schema = Schema(
        classes=(0, 1),
        columns=(
            Column("ward", "categorical", values=("a", "b", "c")),
            Column("age", "integer", minimum=0, maximum=9),
            Column("smoker", "boolean"),
            Column("grade", "ordinal", values=("low", "mid", "high")),
        ),
    )
    assert number_coordinates(schema) == (3, 5)


def test_knots_go_where_the_records_are_but_not_all_to_one_value():
    histogram = np.zeros(256)
    histogram[0], histogram[20:60] = 90000, 50  # as of capital gains
    knots = np.array(knots_of(histogram, 5.0, 92000, 8))
    assert knots[0] == 0
    assert knots[-1] == 1
    assert (np.diff(knots) > 0).all()
    assert np.sum((knots > 20 / 256) & (knots < 60 / 256)) >= 2
    assert np.sum(knots <= 1 / 256) <= 5


def test_noise_alone_gives_even_knots():
    """A bin or two of 256 pass three deviations by chance, but do not hold half of the rows."""
    noise = 30 * np.random.default_rng(0).normal(size=256)
    assert noise.max() > 90
    assert knots_of(noise, 30.0, 1000, 5) == even_knots(5)


UNEVEN = Bins(dimension=2, numbers=(0,), knots=((0.0, 0.001, 0.6, 1.0),))


def test_places_lead_to_rows_and_back():
    places = np.array([[0.0, 0.3], [0.5, -1.0], [1.0, 7.0], [2.25, 0.0], [3.0, 1.0]])
    rows, _ = UNEVEN.from_places(places)
    np.testing.assert_allclose((rows[:, 0] + 1) / 2, [0, 0.0005, 0.001, 0.7, 1], atol=1e-12)
    np.testing.assert_array_equal(rows[:, 1], places[:, 1])
    np.testing.assert_allclose(UNEVEN.to_places(rows), places, atol=1e-9)


def test_slopes_are_those_of_the_rows_by_their_places():
    places, step = np.array([[0.5, 0.3], [1.25, 0.0], [2.75, 1.0]]), 1e-6
    _, slopes = UNEVEN.from_places(places)
    for column in range(2):
        there = places.copy()
        there[:, column] += step
        moved = UNEVEN.from_places(there)[0] - UNEVEN.from_places(places)[0]
        np.testing.assert_allclose(moved[:, column] / step, slopes[:, column], rtol=1e-6)
