"""Hermite features: Mehler's formula, summed over all coordinates and multiplied over a few."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import hermite

from limbeck.errors import UserError
from limbeck.features.base import features_of
from limbeck.features.hermite import Hermite, _functions, _within

SMALL = Hermite(dimension=5, order=6, subset=3, order_product=2)


def records(n=4, dimension=5, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(0).uniform(size=(n, dimension)), dtype)


def functions(x, rho, order, dtype=np.float64):
    """φ_0, ..., φ_order, a row a point."""
    with jax.enable_x64(True):
        points = _within(jnp.asarray(x, dtype)[:, None], order)
        found = jax.jit(_functions, static_argnums=(0, 1))(rho, order, points)
        return np.asarray(found)[:, :, 0].T


def gaussian(x, y, rho):
    """Mehler's kernel, coordinate by coordinate."""
    return np.exp(-rho / (1 - rho**2) * (x - y) ** 2)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_the_recursion_is_that_of_the_polynomials(rho):
    x = np.linspace(-3, 3, 31)
    found = functions(x, rho, order=8)
    for c in range(9):
        eigenvalue = (1 - rho) * rho**c
        norm = 2**c * math.factorial(c) * math.sqrt((1 - rho) / (1 + rho))
        polynomial = hermite.hermval(x, [0] * c + [1])
        expected = math.sqrt(eigenvalue / norm) * polynomial * np.exp(-rho / (1 + rho) * x**2)
        np.testing.assert_allclose(found[:, c], expected, atol=1e-13)


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_the_sum_tends_to_the_gaussian_kernel_at_the_stated_rate(rho):
    x = np.linspace(-1.5, 1.5, 31)
    y = x[:, None]
    for order in (2, 5, 10, 20, 40, 80):
        found = functions(x, rho, order)
        error = np.abs(found @ found.T - gaussian(x, y, rho))
        growth = np.exp((1 - rho) / (1 + rho) * (x**2 + y**2) / 2)
        bound = math.sqrt((1 + rho) / (1 - rho)) * rho ** (order + 1) * growth
        assert (error < bound + 1e-14).all()
        assert error.max() > bound.max() / 30 or bound.max() < 1e-12  # it is that slow, too


@pytest.mark.parametrize("rho", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("order", [100, 150])
def test_high_orders_are_exact_in_single_precision(rho, order):
    """Where 2^c c! is 1e188 and more, and φ_0 down to 1e-43 and less."""
    x = np.linspace(-1, 1, 201) * math.sqrt(2 * order + 1)
    single = functions(x, rho, order, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, functions(x, rho, order), atol=1e-5)


@pytest.mark.parametrize("order", [0, 1, 5, 20, 100])
@pytest.mark.parametrize("rho", [0.01, 0.5, 0.9])
def test_wherever_a_coordinate_is_some_function_is_large(rho, order):
    """So there is always something to scale to unit norm."""
    x = np.concatenate([np.linspace(0, 20, 400), [1e3, 1e10]])
    squares = np.sum(functions(x, rho, order) ** 2, axis=1)
    assert squares.min() > 0.15
    assert squares.max() < 1 + 1e-12


def test_the_features_have_the_sum_and_the_product_kernel():
    phi = Hermite(dimension=6, order=40, subset=3, order_product=30, scale=3.0, seed=5)
    few = phi._coordinates
    assert len(set(few.tolist())) == 3
    with jax.enable_x64(True):
        x, y = records(8, 6, np.float64).reshape(2, 4, 6)
        found = np.sum(phi(x) * phi(y), axis=1)
    of_coordinates = gaussian(3 * np.asarray(x), 3 * np.asarray(y), phi.rho)
    mean, product = of_coordinates.mean(axis=1), of_coordinates[:, few].prod(axis=1)
    np.testing.assert_allclose(found, (mean + product) / 2, atol=1e-8)


def test_without_a_subset_there_is_the_sum_kernel_alone():
    phi = Hermite(dimension=5, order=40, subset=0)
    with jax.enable_x64(True):
        x, y = records(8, dtype=np.float64).reshape(2, 4, 5)
        found = np.sum(phi(x) * phi(y), axis=1)
    expected = gaussian(4 * np.asarray(x), 4 * np.asarray(y), phi.rho).mean(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_by_default_the_sum_is_the_kernel_for_coordinates_within_one():
    phi = Hermite(dimension=1, subset=0)
    x = np.linspace(-1, 1, 41)
    found = functions(phi.scale * x, phi.rho, phi.order)
    np.testing.assert_allclose(
        found @ found.T, np.exp(-((x - x[:, None]) ** 2) / (2 * 0.2165**2)), atol=1e-4
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("phi", [SMALL, Hermite(dimension=5, order=100, rho=0.99)])
def test_features_have_unit_norm(phi, dtype):
    scales = np.array([[0.0], [0.5], [1.0], [-2.0], [1e3], [1e18]])
    with jax.enable_x64(True):
        found = jax.jit(phi)(jnp.asarray(scales, dtype) * records(6, dtype=dtype))
        assert found.dtype == dtype
        norms = np.linalg.norm(np.asarray(found, np.float64), axis=1)
    np.testing.assert_allclose(norms, 1, rtol=4 * np.finfo(dtype).eps)


def test_features_are_the_same_in_either_precision():
    with jax.enable_x64(True):
        double = dataclasses.replace(SMALL)(records(dtype=np.float64))
    np.testing.assert_allclose(SMALL(records()), double, atol=1e-6)


@pytest.mark.parametrize(
    "phi", [Hermite(dimension=784), Hermite(dimension=13), SMALL], ids=lambda phi: str(phi.size)
)
def test_a_records_features_do_not_depend_on_where_it_stands(phi):
    """To the last bit: a neighbouring data set shifts all later records by one place."""
    x = np.asarray(records(200, phi.dimension))
    whole = features_of(phi, x)
    for start in (1, 7):
        np.testing.assert_array_equal(features_of(phi, x[start:]), whole[start:])
    order = np.random.default_rng(3).permutation(len(x))
    np.testing.assert_array_equal(features_of(phi, x[order]), whole[order])


def test_the_derivative_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, way, step = rng.random((1, 5)), rng.normal(size=SMALL.size), rng.normal(size=(1, 5))
        value_and_slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(SMALL(x) @ way)))
        ahead, behind = (value_and_slope(x + sign * 1e-6 * step)[0] for sign in (1, -1))
        slope = float(jnp.sum(value_and_slope(x)[1] * step))
    assert slope == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("phi", [SMALL, Hermite(dimension=5, subset=0)])
def test_a_total_is_the_weighted_sum_of_the_features_and_so_is_its_slope(phi):
    """Which it makes without them."""
    weights = jnp.asarray([0.5, 2.0, 0.0, 1.0])
    with jax.enable_x64(True):
        x = records(dimension=phi.dimension, dtype=np.float64)

        def plain(x):
            return weights @ phi(x)

        def fast(x):
            return phi.total(x, lambda norms: weights * norms)

        np.testing.assert_allclose(fast(x), plain(x), atol=1e-12)
        way = jnp.asarray(np.random.default_rng(1).normal(size=phi.size))
        slopes = [jax.jit(jax.grad(lambda x, of=of: of(x) @ way))(x) for of in (fast, plain)]
        np.testing.assert_allclose(*slopes, atol=1e-10)


@pytest.mark.parametrize("phi", [SMALL, Hermite(dimension=5, order=150, rho=0.99)])
def test_slopes_are_finite_near_and_far(phi):
    values = np.concatenate([np.linspace(-1, 9, 1001), [0, 30, 1e6, 1e30]])
    slope = jax.jit(jax.grad(lambda x: jnp.sum(phi(x) ** 3)))
    assert np.isfinite(slope(jnp.tile(jnp.asarray(values, jnp.float32)[:, None], 5))).all()


def test_the_fields_make_the_same_map_again():
    again = Hermite(**dataclasses.asdict(SMALL))
    assert again == SMALL
    assert hash(again) == hash(SMALL)
    np.testing.assert_array_equal(again(records()), SMALL(records()))
    wide = Hermite(dimension=100)
    other = dataclasses.replace(wide, seed=1)
    assert not np.array_equal(other._coordinates, wide._coordinates)
    assert not np.allclose(other(records(4, 100)), wide(records(4, 100)), atol=1e-2)


@pytest.mark.parametrize(
    ("phi", "size"),
    [
        (SMALL, 5 * 7 + 3**3),
        (Hermite(dimension=784), 784 * 21 + 21**2),
        (Hermite(dimension=3, order=4, subset=0), 15),
        (Hermite(dimension=3, order=0, subset=1, order_product=9), 3 + 10),
    ],
)
def test_there_is_a_feature_an_order_and_coordinate_and_a_product(phi, size):
    assert phi(records(2, phi.dimension)).shape == (2, phi.size) == (2, size)


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="rho must be between 0 and 1, not 1"):
        Hermite(dimension=5, rho=1.0)
    with pytest.raises(UserError, match="subset must be from 0 to the 1 coordinates"):
        Hermite(dimension=1)
    for orders in ({"order": -1}, {"order": 151}, {"order_product": 151}):
        with pytest.raises(UserError, match="go from 0 to 150"):
            Hermite(dimension=5, **orders)
