"""Whitened scattering: public coordinates, few and of like size."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.fft import dctn

from limbeck.features.base import features_of
from limbeck.features.inputs import ImageInputs
from limbeck.features.leaves import dead_leaves
from limbeck.features.scattering import Scattering
from limbeck.features.whitened import OPPONENT, WhitenedScattering, _basis


def pictures(shape, count=4, seed=0):
    return np.random.default_rng(seed).normal(size=(count, int(np.prod(shape)))).astype(np.float32)


def test_dead_leaves_are_the_same_everywhere_and_differ_from_each_other():
    leaves = dead_leaves(250, (12, 10, 3))
    np.testing.assert_array_equal(leaves, dead_leaves(250, (12, 10, 3)))
    assert leaves.shape == (250, 360)
    assert np.isfinite(leaves).all()
    assert len(np.unique(leaves, axis=0)) == 250
    assert abs(leaves.mean()) < 0.2
    assert 0.8 < leaves.std() < 1.3


def test_neighbouring_pixels_of_dead_leaves_go_together_and_edges_are_sharp():
    """As in photographs: most steps are none at all, and a few are large."""
    steps = np.diff(dead_leaves(200, (24, 24, 1)).reshape(-1, 24, 24), axis=1)
    assert np.mean(steps == 0) > 0.6
    assert np.mean(np.abs(steps) > 1) > 0.05


@pytest.mark.parametrize("shape", [(12, 12, 1), (9, 13, 3)])
def test_the_features_are_those_of_the_definition(shape):
    phi, x = WhitenedScattering(shape=shape, components=50, pictures=60), pictures(shape)
    scattering, basis = Scattering(shape=shape), _basis(phi)
    if shape[2] == 3:
        z = features_of(scattering, (x.reshape(4, -1, 3) @ OPPONENT.T).reshape(x.shape))
    else:
        z = features_of(scattering, x)
    z = z.reshape(4, shape[2], -1, *scattering.grid)
    over_places = dctn(z, axes=(3, 4), norm="ortho")
    turned = np.einsum("ncpij,cpq->ncqij", over_places, basis.paths).reshape(4, -1)
    expected = turned[:, basis.kept] * basis.weights
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(features_of(phi, x), expected, atol=1e-5)
    assert phi.size == len(basis.kept) == 50


def test_no_direction_of_other_pictures_is_much_larger_than_the_rest():
    """The largest of the principal mean squares over the hundredth, before and after."""
    shape = (16, 16, 1)
    phi = WhitenedScattering(shape=shape, components=300)
    others = ImageInputs(shape=shape).from_records(dead_leaves(400, shape, seed=1))

    def spread(features):
        sizes = np.linalg.svd(features_of(features, others), compute_uv=False) ** 2
        return sizes[0] / sizes[100]

    assert spread(phi) < 20
    assert spread(Scattering(shape=shape)) > 3 * spread(phi)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 8, 1)])
def test_a_records_features_do_not_depend_on_where_it_stands(shape):
    """To the last bit: a neighbouring data set shifts all later records by one place."""
    x, phi = pictures(shape, count=80), WhitenedScattering(shape=shape)
    whole = features_of(phi, x)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)
    for start in (1, 7):
        np.testing.assert_array_equal(features_of(phi, x[start:]), whole[start:])


def test_the_derivative_is_that_of_finite_differences():
    shape = (9, 9, 3)
    phi = WhitenedScattering(shape=shape, components=40, pictures=50)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, way = rng.random((1, 243)), rng.normal(size=phi.size)
        step = rng.normal(size=x.shape)
        value_and_slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(phi(x) @ way)))
        ahead, behind = (value_and_slope(x + sign * 1e-6 * step)[0] for sign in (1, -1))
        slope = float(jnp.sum(value_and_slope(x)[1] * step))
    assert slope == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-4)


def test_fields_are_all_there_is_to_it():
    phi = WhitenedScattering(shape=(12, 12, 3), components=7, floor=0.1, pictures=20)
    assert WhitenedScattering(**dataclasses.asdict(phi)) == phi


def test_colours_are_turned_not_mixed():
    np.testing.assert_allclose(OPPONENT @ OPPONENT.T, np.eye(3), atol=1e-12)
