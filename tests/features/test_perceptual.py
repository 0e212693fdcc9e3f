"""Perceptual features: every layer counts alike, and a record is seen by itself."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import nets
from limbeck.features.perceptual import Perceptual, _average

PHI = Perceptual(shape=(8, 8, 2), grid=2)
CHANNELS = [64] * 3 + [128] * 2 + [256] * 2 + [512] * 2


def records(n=4, dtype=np.float32):
    return jnp.asarray(np.random.default_rng(0).normal(size=(n, math.prod(PHI.shape))), dtype)


def layers_of(features):
    sizes = [64 * 4] * 3 + CHANNELS[3:]
    return np.split(np.asarray(features), np.cumsum(sizes)[:-1], axis=1)


def test_the_features_are_the_layers_of_the_network():
    """Layers from the third stage on are averaged over all positions."""
    x = records()
    outputs = jax.jit(nets.resnet18_layers)(PHI._params, x.reshape(-1, *PHI.shape))
    assert [output.shape[3] for output in outputs] == CHANNELS
    for output, layer in list(zip(outputs, layers_of(PHI(x)), strict=True))[3:]:
        mean = output.mean(axis=(1, 2))
        expected = mean / jnp.linalg.norm(mean, axis=1, keepdims=True) / 3
        np.testing.assert_allclose(layer, expected, atol=1e-6)


def test_every_layer_counts_alike_and_the_whole_has_unit_norm():
    features = PHI(records())
    assert features.shape == (4, PHI.size)
    np.testing.assert_allclose(jnp.linalg.norm(features, axis=1), 1, rtol=1e-6)
    for layer in layers_of(features):
        np.testing.assert_allclose(np.linalg.norm(layer, axis=1), 1 / 3, rtol=1e-6)


@pytest.mark.parametrize(("side", "cells"), [(6, 3), (7, 3), (4, 4), (2, 5), (5, 1)])
def test_cells_are_means_of_equal_parts(side, cells):
    """Means of a constant are the constant, and the mean of the cells is the mean of all."""
    output = np.random.default_rng(1).normal(size=(2, side, side, 3))
    kept = min(side, cells)
    found = _average(jnp.asarray(output), cells)
    assert found.shape == (2, kept, kept, 3)
    np.testing.assert_allclose(found.mean(axis=(1, 2)), output.mean(axis=(1, 2)), atol=1e-6)
    np.testing.assert_allclose(_average(jnp.ones_like(output), cells), 1, rtol=1e-6)
    if side % kept == 0:
        step = side // kept
        np.testing.assert_allclose(
            found[:, 0, 0], output[:, :step, :step].mean(axis=(1, 2)), atol=1e-6
        )


def test_a_record_has_the_same_features_whatever_stands_beside_it():
    x = records()
    others = x.at[1:].multiply(-3)
    together = np.asarray(PHI(x))
    np.testing.assert_array_equal(PHI(x[::-1])[::-1], together)
    np.testing.assert_array_equal(PHI(others)[0], together[0])


def test_the_derivative_is_the_limit_of_differences():
    with jax.enable_x64(True):
        x, towards = records(n=1, dtype=np.float64), 1e-7 * records(n=2)[1:]
        along = jax.random.normal(jax.random.key(3), (1, PHI.size))
        both = jax.jit(jax.value_and_grad(lambda x: jnp.sum(along * PHI(x))))
        expected = (both(x + towards)[0] - both(x - towards)[0]) / 2
        value, gradient = both(x)
        assert value.dtype == jnp.float64
        np.testing.assert_allclose(jnp.sum(gradient * towards), expected, rtol=1e-5)
        value, gradient = both(jnp.zeros_like(x))
        assert value == 0
        assert np.isfinite(gradient).all()


def test_the_size_is_kept_small():
    assert Perceptual(shape=(28, 28, 1)).size == Perceptual(shape=(32, 32, 3)).size == 10_752


def test_the_fields_make_the_same_map_again():
    again = Perceptual(**dataclasses.asdict(PHI))
    assert again == PHI
    assert hash(again) == hash(PHI)
    np.testing.assert_array_equal(again(records()), PHI(records()))
