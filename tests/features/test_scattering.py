"""The scattering transform against Kymatio's numbers, and what a record's features depend on."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import UserError
from limbeck.features.base import features_of
from limbeck.features.scattering import Scattering

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "scattering.npz")


def coefficients(scattering, x):
    return np.asarray(jax.jit(scattering.coefficients)(x))


def pictures(shape, count=4, seed=0):
    return np.random.default_rng(seed).random((count, int(np.prod(shape))), np.float32)


@pytest.mark.parametrize("side", [28, 32])
@pytest.mark.parametrize("scales", [2, 3])
def test_the_coefficients_are_those_of_kymatio(side, scales):
    x, expected = GOLDEN[f"x_{side}"], GOLDEN[f"scatter_{side}_J{scales}"]
    scattering = Scattering(shape=(side, side, 1), scales=scales, group=None)
    found = coefficients(scattering, x.reshape(len(x), -1))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert scattering.size == expected[0].size


def by_fourier(x, scales, angles):
    """The definition: every convolution at full size, subsampled at the end only.

    Kymatio subsamples between, so both agree where the wavelets have no energy beyond: to 2%.
    """
    from limbeck.features import morlet

    sides = tuple(morlet.padded(side, scales) for side in x.shape)
    before = [(side - own) // 2 for side, own in zip(sides, x.shape, strict=True)]
    pads = [(b, s - n - b) for b, s, n in zip(before, sides, x.shape, strict=True)]
    u0 = np.pad(x, pads, mode="reflect")
    window = np.fft.fft2(morlet._gabor(sides, 0.8 * 2 ** (scales - 1), 0, 0, 1)).real

    def convolved(u, spectrum):
        return np.fft.ifft2(np.fft.fft2(u) * spectrum)

    def smooth(u):
        return convolved(u, window).real[:: 2**scales, :: 2**scales][1:-1, 1:-1]

    waves = [
        [morlet._morlet(sides, j, angle, angles) for angle in range(angles)] for j in range(scales)
    ]
    first, second = [], []
    for j1, of_scale in enumerate(waves):
        for wave in of_scale:
            u1 = np.abs(convolved(u0, wave))
            first.append(smooth(u1))
            second += [
                smooth(np.abs(convolved(u1, finer))) for later in waves[j1 + 1 :] for finer in later
            ]
    return np.stack([smooth(u0), *first, *second])


@pytest.mark.parametrize(
    ("shape", "scales", "angles"), [((20, 33, 1), 2, 8), ((17, 12, 1), 2, 6), ((24, 24, 1), 1, 4)]
)
def test_any_size_and_bank_is_that_of_the_definition(shape, scales, angles):
    x = pictures(shape, count=1)
    scattering = Scattering(shape=shape, scales=scales, orientations=angles, group=None)
    found = coefficients(scattering, x)[0]
    expected = by_fourier(x[0].astype(np.float64).reshape(shape[:2]), scales, angles)
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) < 0.02 * np.linalg.norm(expected)
    order_1 = slice(1, 1 + angles)  # scale zero is never subsampled before the window
    np.testing.assert_allclose(found[order_1], expected[order_1], atol=1e-5)


def test_each_colour_is_scattered_on_its_own():
    x = pictures((16, 16, 3)).reshape(4, 16, 16, 3)
    whole = coefficients(Scattering(shape=(16, 16, 3), group=None), x.reshape(4, -1))
    alone = Scattering(shape=(16, 16, 1), group=None)
    for colour in range(3):
        one = coefficients(alone, x[..., colour].reshape(4, -1))
        np.testing.assert_allclose(whole[:, 81 * colour : 81 * (colour + 1)], one, atol=1e-6)


def test_features_are_normalised_group_by_group_and_then_as_a_whole():
    scattering = Scattering(shape=(12, 12, 1))
    found = features_of(scattering, pictures((12, 12, 1)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    groups = found.reshape(4, 27, -1)
    np.testing.assert_allclose(groups.mean(axis=2), 0, atol=1e-6)
    # Brightness and contrast of a record are gone, up to what keeps the variance from zero.
    again = features_of(scattering, 40 * pictures((12, 12, 1)))
    brighter = features_of(scattering, 20 * pictures((12, 12, 1)))
    np.testing.assert_allclose(again, brighter, atol=1e-3)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (9, 13, 2), (8, 8, 5)])
def test_a_records_features_do_not_depend_on_where_it_stands(shape):
    """To the last bit: a neighbouring data set shifts all later records by one place."""
    x = pictures(shape, count=80)
    scattering = Scattering(shape=shape)
    whole = features_of(scattering, x)
    for start in (1, 7):
        np.testing.assert_array_equal(features_of(scattering, x[start:]), whole[start:])


@pytest.mark.parametrize("shape", [(9, 9, 1), (8, 10, 3)])
def test_the_derivative_is_that_of_finite_differences(shape):
    scattering = Scattering(shape=shape)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, way = rng.random((1, int(np.prod(shape)))), rng.normal(size=scattering.size)
        step = rng.normal(size=x.shape)
        value_and_slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(scattering(x) @ way)))
        ahead, behind = (value_and_slope(x + sign * 1e-6 * step)[0] for sign in (1, -1))
        slope = float(jnp.sum(value_and_slope(x)[1] * step))
    assert slope == pytest.approx(float(ahead - behind) / 2e-6, rel=1e-5)


@pytest.mark.parametrize(
    "scattering",
    [
        Scattering(shape=(9, 13, 2)),
        Scattering(shape=(12, 10, 1), group=None),
        Scattering(shape=(17, 20, 1), scales=3, group=7),
    ],
    ids=str,
)
def test_derivatives_along_directions_are_those_of_the_way_back(scattering):
    """More directions than are taken beside the picture at a time, and not a multiple of it."""
    x = pictures(scattering.shape, count=1)[0]
    directions = np.random.default_rng(1).normal(size=(40, len(x))).astype(np.float32)
    found = np.asarray(jax.jit(scattering.along)(x, directions))
    ways = np.random.default_rng(2).normal(size=(3, scattering.size)).astype(np.float32)
    back = jax.jit(lambda x, way: jax.vjp(scattering, x)[1](way[None])[0][0])
    for way in ways:
        np.testing.assert_allclose(found @ way, directions @ back(x[None], way), atol=1e-2)
    assert np.abs(found).max() > 0.1


def test_the_precision_is_that_of_the_picture_where_float64_is_at_hand():
    """As it is behind the wall."""
    scattering = Scattering(shape=(9, 9, 1))
    x = pictures(scattering.shape, count=8)
    ways = np.random.default_rng(0).normal(size=(8, scattering.size)).astype(np.float32)
    with jax.enable_x64(True):
        found, back = jax.vjp(scattering, jnp.asarray(x))
        (slopes,) = back(jnp.asarray(ways))
        along = scattering.along(jnp.asarray(x[0]), jnp.asarray(x))
    assert {a.dtype for a in (found, slopes, along)} == {np.dtype(np.float32)}


def test_derivatives_along_directions_are_zero_where_the_modulus_is():
    scattering = Scattering(shape=(12, 12, 1), group=None)
    slopes = jax.jit(scattering.along)(np.zeros(144, np.float32), np.eye(144, dtype=np.float32))
    np.testing.assert_array_equal(slopes, 0)


@pytest.mark.parametrize("level", [0.0, 0.5])
def test_a_picture_of_one_colour_has_finite_features_and_slopes(level):
    scattering = Scattering(shape=(12, 12, 1))
    value_and_slope = jax.jit(jax.value_and_grad(lambda x: jnp.sum(scattering(x))))
    for found in value_and_slope(np.full((2, 144), level, np.float32)):
        assert np.isfinite(found).all()


def test_fields_are_all_there_is_to_it():
    scattering = Scattering(shape=(12, 12, 3), scales=1, orientations=4, group=5)
    assert Scattering(**dataclasses.asdict(scattering)) == scattering


def test_what_cannot_be_is_refused():
    with pytest.raises(UserError, match="at least 5 by 5 pixels"):
        Scattering(shape=(4, 28, 1))
    with pytest.raises(UserError, match="217 channels cannot be grouped by 3"):
        Scattering(shape=(28, 28, 1), scales=3)


@pytest.mark.parametrize("size", [1e-22, 1e-20, 1e-18, 1e-15, 1e-10])
def test_pictures_of_next_to_nothing_have_unit_norm_or_none(size):
    x = size * np.random.default_rng(0).normal(size=(4, 144)).astype(np.float32)
    norms = np.linalg.norm(features_of(Scattering(shape=(12, 12, 1)), x), axis=1)
    assert np.all((norms == 0) | (np.abs(norms - 1) < 1e-5))
