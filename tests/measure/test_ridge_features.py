"""Clipped sums on features against their definition, and what one record can do to them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.base import FeatureMap, unit_norm
from limbeck.features.canvas import Canvas, draw, features, jacobians, linearised
from limbeck.measure.contributions.ridge_features import (
    Records,
    clipped_sum_of_features,
    clipped_sum_of_pixels,
)
from limbeck.models import ridge
from limbeck.privacy.clipping import ROUNDING, Clip

FEATURES, PIXELS, COORDINATES = 30, 12, 9
POINTS, CLASSES, COUNT, LAMBDA = 7, 3, 25, 1e-3


@dataclasses.dataclass(frozen=True)
class Waves(FeatureMap):
    """Smooth features, small enough to differentiate record by record."""

    size = FEATURES

    def __call__(self, x):
        weights = np.random.default_rng(1).normal(size=(PIXELS, FEATURES)).astype(x.dtype)
        return unit_norm(jnp.cos(x @ weights))


PHI = Waves()


def problem(seed=0, count=COUNT):
    """Coordinates, the canvas with two corrupted pixels a point, labels, records."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(PIXELS, COORDINATES)))[0]
    z = rng.normal(size=(POINTS, COORDINATES))
    corrupted = rng.random((POINTS, PIXELS)) < 2 / PIXELS
    canvas = Canvas(basis, corrupted, rng.normal(size=(POINTS, PIXELS)))
    y_s = np.eye(CLASSES)[np.arange(POINTS) % CLASSES] - 1 / CLASSES
    features = rng.normal(size=(count, FEATURES)).astype(np.float32)  # as they are kept
    y = np.eye(CLASSES)[rng.integers(CLASSES, size=count)] - 1 / CLASSES
    return z, canvas, y_s, Records(features, y, np.ones(count, bool))


def loss(readout, phi, y):
    return 0.5 * jnp.sum((y - phi @ readout) ** 2)


def predictor(features, y_s):
    """W by the definition, through a plain solve."""
    gram = features @ features.T
    m = gram + LAMBDA * jnp.trace(gram) / POINTS * jnp.eye(POINTS)
    return features.T @ jnp.linalg.solve(m, y_s)


def fast(way, clip, z, canvas, y_s, records):
    """The clipped sum in one of the two ways, as the oracles compute it."""
    with jax.enable_x64(True):
        solution = ridge.solve(PHI(draw(canvas, jnp.asarray(z))), jnp.asarray(y_s), LAMBDA)
        if way == "features":
            found = clipped_sum_of_features(clip, solution, records)
        else:
            slopes = jax.jacfwd(lambda z: PHI(draw(canvas, z)))(jnp.asarray(z))
            own = jnp.einsum("ifip->ipf", slopes)
            found = clipped_sum_of_pixels(clip, solution, own, records)
        return np.asarray(found)


def plain(way, z, canvas, y_s, records):
    """Per-record gradients by vmap(grad)."""
    with jax.enable_x64(True):
        z, y_s = jnp.asarray(z), jnp.asarray(y_s)
        features = PHI(draw(canvas, z))
        if way == "readout":
            start, function = predictor(features, y_s), loss
        elif way == "features":
            start, function = features, lambda f, phi, y: loss(predictor(f, y_s), phi, y)
        else:

            def function(z, phi, y):
                return loss(predictor(PHI(draw(canvas, z)), y_s), phi, y)

            start = z
        features = records.features.astype(np.float64)
        found = jax.vmap(jax.grad(function), (None, 0, 0))(start, features, records.y)
        return np.asarray(found)


WAYS = ["features", "pixels"]
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_the_sum_is_that_of_the_clipped_gradients(way):
    case = problem()
    gradients = plain(way, *case)
    norms = np.linalg.norm(gradients, axis=(1, 2))
    for clip in (Clip(bound=np.inf), Clip(), Clip(bound=float(np.median(norms)))):
        expected = np.einsum("l,lij->ij", np.asarray(clip.factors(norms)), gradients)
        found = fast(way, clip, *case)
        assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)


def test_what_is_pulled_back_from_the_readout_is_the_gradient_of_the_features():
    z, canvas, y_s, records = problem()
    with jax.enable_x64(True):
        features = PHI(draw(canvas, jnp.asarray(z)))
        solution = ridge.solve(features, jnp.asarray(y_s), LAMBDA)
        by_readout = plain("readout", z, canvas, y_s, records).sum(axis=0)
        found = ridge.pull_back(solution, jnp.asarray(by_readout))
    expected = plain("features", z, canvas, y_s, records).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_what_is_pulled_back_from_the_features_is_the_gradient_of_the_pixels():
    """In single precision, as the public side works; corrupted pixels have no part in it."""
    z, canvas, y_s, records = problem()
    direction = fast("features", Clip(bound=np.inf), z, canvas, y_s, records)
    expected = plain("pixels", z, canvas, y_s, records).sum(axis=0)
    values, pull_back = linearised(PHI, canvas, z)
    np.testing.assert_allclose(values, features(PHI, canvas, z), atol=1e-6)
    assert np.linalg.norm(pull_back(direction) - expected) < 1e-4 * np.linalg.norm(expected)
    by_jacobians = np.einsum("ipf,if->ip", jacobians(PHI, canvas, z), direction)
    np.testing.assert_allclose(by_jacobians, expected, rtol=1e-3, atol=1e-3)


def test_corrupted_pixels_keep_their_noise():
    z, canvas, *_ = problem()
    for scale in (1, -3):
        drawn = np.asarray(draw(canvas, jnp.asarray(scale * z)))
        np.testing.assert_allclose(
            drawn[canvas.corrupted], canvas.noise[canvas.corrupted], rtol=1e-6
        )
        free = ~canvas.corrupted
        np.testing.assert_allclose(drawn[free], (scale * z @ canvas.basis.T)[free], rtol=1e-4)


@every_way
def test_padding_contributes_nothing(way):
    z, canvas, y_s, records = problem()
    padded = Records(*(np.concatenate([a, a[:7]]) for a in records[:2]), np.arange(32) < COUNT)
    found = fast(way, Clip(), z, canvas, y_s, padded)
    np.testing.assert_allclose(found, fast(way, Clip(), z, canvas, y_s, records), atol=1e-12)


@every_way
@pytest.mark.parametrize("clip", [Clip(), Clip(bound=1e-3)], ids=["normalised", "clipped"])
def test_removing_a_record_moves_the_sum_by_at_most_its_claimed_norm(way, clip):
    z, canvas, y_s, records = problem()
    whole = fast(way, clip, z, canvas, y_s, records)
    for gone in range(COUNT):
        without = records._replace(mask=np.arange(COUNT) != gone)
        moved = whole - fast(way, clip, z, canvas, y_s, without)
        assert np.linalg.norm(moved) <= clip.record_norm


HARD = {
    "points at nearly one place": lambda z: z[:1] + 1e-4 * z,
    "points at one place": lambda z: z[:1] + 0 * z,
    "points far out": lambda z: 1e4 * z,
}


@every_way
@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_no_contribution_is_longer_than_claimed_even_where_terms_cancel(way, hard, scale):
    z, canvas, y_s, records = problem(count=8)
    canvas = Canvas.plain(canvas.basis, POINTS)
    records = records._replace(features=scale * records.features)
    for only in range(8):
        alone = records._replace(mask=np.arange(8) == only)
        found = fast(way, Clip(), hard(z), canvas, y_s, alone)
        assert np.linalg.norm(found) <= Clip().record_norm


def test_records_beside_the_points_are_not_lengthened_by_single_precision():
    """Features are kept in float32; all of a gradient but a millionth cancels here.

    With squared norms in float32 the longest contribution was 1.33 times as long as it may be.
    """
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(1, 400))

    def near(count):
        x = centre + 1e-4 * rng.normal(size=(count, 400))
        return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)

    one_hot = np.eye(10) - 1 / 10
    points, records, y = near(10), near(64), one_hot[rng.integers(10, size=64)]
    with jax.enable_x64(True):
        solution = ridge.solve(jnp.asarray(points, jnp.float64), jnp.asarray(one_hot), 1e-4)
        for only in range(64):
            alone = Records(records, y, np.arange(64) == only)
            found = clipped_sum_of_features(Clip(), solution, alone)
            assert np.linalg.norm(found) <= Clip().record_norm


@every_way
@pytest.mark.parametrize("jitter", [1.0, 1e-3])
def test_a_record_gone_from_the_front_does_not_shake_the_others(way, jitter):
    """All later records move one place up and their sums round differently: by how much?"""
    z, canvas, y_s, few = problem(count=64)
    canvas, z = Canvas.plain(canvas.basis, POINTS), z[:1] + jitter * z
    tiled = [np.tile(a, (40, 1)) for a in few[:2]]
    total = []
    for start in (0, 1):
        shifted = [a[start:] for a in tiled]
        pieces = [
            Records(*(np.resize(a[i : i + 512], (512, *a.shape[1:])) for a in shifted), mask)
            for i in range(0, len(shifted[0]), 512)
            for mask in [np.arange(512) < len(shifted[0]) - i]
        ]
        total.append(sum(fast(way, Clip(), z, canvas, y_s, piece) for piece in pieces))
    alone = fast(way, Clip(), z, canvas, y_s, few._replace(mask=np.arange(64) == 0))
    assert np.linalg.norm(total[0] - total[1] - alone) < ROUNDING / 10


@every_way
def test_a_record_whose_norm_overflows_is_left_out_and_harms_nothing(way):
    z, canvas, y_s, records = problem(count=8)
    features = records.features.astype(np.float64)
    features[3] = 1e200
    without = records._replace(mask=np.arange(8) != 3)
    for clip in (Clip(), Clip(bound=1.0)):
        found = fast(way, clip, z, canvas, y_s, records._replace(features=features))
        expected = fast(way, clip, z, canvas, y_s, without)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found - expected) <= clip.record_norm


def test_nothing_recompiles_from_call_to_call():
    sums = (clipped_sum_of_features, clipped_sum_of_pixels)
    for way in WAYS:
        fast(way, Clip(), *problem())
    before = [each._cache_size() for each in sums]
    for way in WAYS:
        fast(way, Clip(), *problem(seed=1))
    assert [each._cache_size() for each in sums] == before
