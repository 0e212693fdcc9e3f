"""Fourier features of smooth pictures: what is blurred away makes no difference."""

import numpy as np
import pytest
from scipy.fft import dctn, idctn

from limbeck.features.base import features_of
from limbeck.features.smooth import SmoothFourier

SHAPE = (28, 25, 1)


def pictures(shape=SHAPE, count=6, seed=0):
    return np.random.default_rng(seed).normal(size=(count, int(np.prod(shape)))).astype(np.float32)


def test_the_features_are_those_of_the_definition():
    phi, x = SmoothFourier(shape=SHAPE, count=50), pictures()
    z = dctn(x.reshape(-1, *SHAPE[:2]), axes=(1, 2), norm="ortho")[:, :10, :10].reshape(len(x), -1)
    angles = (z / np.linalg.norm(z, axis=1, keepdims=True)) @ np.asarray(phi.fourier._frequencies)
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(50)
    np.testing.assert_allclose(features_of(phi, x), expected, atol=1e-5)


def test_its_kernel_is_gaussian_on_the_sphere():
    """Within five deviations over 20 000 frequencies, which are fixed."""
    phi, x = SmoothFourier(shape=(8, 8, 1), count=20_000), pictures((8, 8, 1), count=4)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    squares = np.sum((u[:, None] - u) ** 2, axis=2)
    found = features_of(phi, x)
    np.testing.assert_allclose(
        found @ found.T, np.exp(-squares / (2 * phi.length_scale**2)), atol=5 / np.sqrt(40_000)
    )


def test_neither_fine_grain_nor_contrast_makes_a_difference():
    phi, x = SmoothFourier(shape=SHAPE), pictures()
    grain = np.random.default_rng(1).normal(size=(len(x), 28, 25))
    grain[:, :10, :10] = 0
    grain = idctn(grain, axes=(1, 2), norm="ortho").reshape(x.shape).astype(np.float32)
    np.testing.assert_allclose(features_of(phi, 3 * x + grain), features_of(phi, x), atol=1e-4)
    assert np.abs(features_of(phi, x[::-1]) - features_of(phi, x)).max() > 0.01


@pytest.mark.parametrize("shape", [(28, 28, 1), (13, 9, 3)])
def test_a_records_features_do_not_depend_on_where_it_stands(shape):
    x, phi = pictures(shape, count=70), SmoothFourier(shape=shape)
    whole = features_of(phi, x)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, rtol=1e-5)
    for start in (1, 7):
        np.testing.assert_array_equal(features_of(phi, x[start:]), whole[start:])


def checkerboard(shape=(28, 28, 1)):
    """Of nothing but the finest grain; as `ImageInputs` has it."""
    rows, columns = np.indices(shape[:2])
    signs = (-1.0) ** ((rows + 1) // 2 + (columns + 1) // 2)
    return np.repeat(signs.reshape(1, -1), shape[2], axis=1).astype(np.float32)


def test_rounding_errors_are_not_stretched_to_norm_one():
    phi = SmoothFourier(shape=(28, 28, 1), count=20)
    nothing = features_of(phi, np.zeros((1, 784), np.float32))
    np.testing.assert_allclose(features_of(phi, checkerboard()), nothing, atol=1e-4)


def test_memory_does_not_grow_with_the_square_of_the_pixels():
    """A dense matrix of all frequencies of this picture would take a terabyte."""
    phi = SmoothFourier(shape=(1024, 1024, 3), count=5)
    found = features_of(phi, np.random.default_rng(0).random((1, 3 * 2**20), np.float32))
    np.testing.assert_allclose(np.linalg.norm(found), 1, rtol=1e-5)


def test_a_picture_of_one_colour_has_features_too():
    phi = SmoothFourier(shape=(8, 8, 1), count=3)
    np.testing.assert_allclose(
        features_of(phi, np.zeros((1, 64), np.float32))[0], [3**-0.5] * 3 + [0] * 3, atol=1e-6
    )
