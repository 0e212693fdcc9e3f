"""The closed form against its definition, and what one record can do to the sum."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.fc_ntk import FCNTK
from limbeck.measure.contributions import ridge_points
from limbeck.measure.contributions.ridge_points import Records, clipped_sum, prepare
from limbeck.privacy.clipping import ROUNDING, Clip

DIMENSION = 20
SHAPES = {  # points, classes; the low-rank path is taken where points > c(c + 1)/2
    "one a class": (3, 3),
    "direct": (6, 4),
    "low rank": (30, 4),
    "two classes, low rank": (12, 2),
    "more classes than points": (4, 7),
}


FEW = {name: SHAPES[name] for name in ("direct", "low rank")}


def problem(points, classes, records=25, seed=0, coordinates=None):
    """Support and records; with `coordinates`, only the first few can be moved."""
    rng = np.random.default_rng(seed)
    d = coordinates or DIMENSION
    x = rng.normal(size=(records, DIMENSION))
    y = np.eye(classes)[rng.integers(classes, size=records)] - 1 / classes
    support_x = rng.normal(size=(points, d))
    support_y = np.eye(classes)[np.arange(points) % classes] - 1 / classes
    return support_x, support_y, Records(x[:, :d], np.sum(x**2, axis=1), y, np.ones(records, bool))


def kernel(depth=1):
    return FCNTK(dimension=DIMENSION, depth=depth)


def loss(kernel, support_y, regularisation, support_x, x, norm, y):
    """Eq. 3, for one record, as it stands in the paper."""
    k = kernel.symmetric(support_x)
    m = len(k)
    alpha = jnp.linalg.solve(k + regularisation * jnp.trace(k) / m * jnp.eye(m), support_y)
    norms = jnp.sum(support_x**2, axis=1)
    prediction = kernel.from_gram((support_x @ x)[None], norm[None], norms) @ alpha
    return jnp.sum((y - prediction[0]) ** 2) / 2


def plain_gradients(kernel, support_x, support_y, records, regularisation=1e-4):
    """vmap(grad) of the definition."""
    with jax.enable_x64(True):
        one = functools.partial(loss, kernel, jnp.asarray(support_y), regularisation)
        gradients = jax.vmap(jax.grad(one), (None, 0, 0, 0))
        return np.asarray(jax.jit(gradients)(*map(jnp.asarray, (support_x, *records[:3]))))


def fast_sum(kernel, clip, support_x, support_y, records, regularisation=1e-4):
    with jax.enable_x64(True):
        support, low_rank = prepare(kernel, support_x, support_y, regularisation)
        return np.asarray(clipped_sum(kernel, clip, support, low_rank, records))


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("shape", "depth", "coordinates"),
    [(shape, 1, None) for shape in SHAPES.values()] + [((6, 4), 2, None), ((30, 4), 1, 12)],
    ids=[*SHAPES, "deeper", "in a subspace"],
)
def test_gradients_and_their_norms_are_those_of_the_definition(shape, depth, coordinates):
    support_x, support_y, records = problem(*shape, coordinates=coordinates)
    plain = plain_gradients(kernel(depth), support_x, support_y, records)
    with jax.enable_x64(True):
        support, low_rank = prepare(kernel(depth), support_x, support_y, 1e-4)
        parts = ridge_points._per_record(kernel(depth), support, low_rank, records)
    np.testing.assert_allclose(parts.squared, np.sum(plain**2, axis=(1, 2)), rtol=1e-9)
    assert (parts.bound >= parts.squared).all()
    found = fast_sum(kernel(depth), Clip(bound=np.inf), support_x, support_y, records)
    assert relative(found, plain.sum(axis=0)) < 1e-9


@pytest.mark.parametrize("shape", FEW.values(), ids=FEW)
def test_the_clipped_sum_is_that_of_the_clipped_gradients(shape):
    support_x, support_y, records = problem(*shape)
    plain = plain_gradients(kernel(), support_x, support_y, records)
    norms = np.linalg.norm(plain, axis=(1, 2))
    for clip in (Clip(), Clip(bound=float(np.median(norms)))):
        factors = np.asarray(clip.factors(norms))
        expected = np.einsum("l,lmd->md", factors, plain)
        found = fast_sum(kernel(), clip, support_x, support_y, records)
        assert relative(found, expected) < 1e-5


@pytest.mark.parametrize("shape", FEW.values(), ids=FEW)
def test_padding_contributes_nothing(shape):
    support_x, support_y, records = problem(*shape)
    padded = Records(*(np.concatenate([a, a[:7]]) for a in records[:3]), np.arange(32) < 25)
    found = fast_sum(kernel(), Clip(), support_x, support_y, padded)
    expected = fast_sum(kernel(), Clip(), support_x, support_y, records)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", FEW.values(), ids=FEW)
@pytest.mark.parametrize("clip", [Clip(), Clip(bound=1e-3)], ids=["normalised", "clipped"])
def test_removing_a_record_moves_the_sum_by_at_most_its_claimed_norm(shape, clip):
    support_x, support_y, records = problem(*shape)
    whole = fast_sum(kernel(), clip, support_x, support_y, records)
    for gone in range(25):
        without = records._replace(mask=np.arange(25) != gone)
        moved = whole - fast_sum(kernel(), clip, support_x, support_y, without)
        assert np.linalg.norm(moved) <= clip.record_norm


HARD = {
    "support far out": lambda x: 30 * x,
    "support at nearly one point": lambda x: x[:1] + 1e-3 * x,
    "support near zero": lambda x: 1e-4 * x,
    "support very far out": lambda x: 1e5 * x,
    "support within rounding of one point": lambda x: x[:1] + 1e-7 * x,
    "support on one point": lambda x: 0 * x + x[:1],
    "one point far out": lambda x: x * np.where(np.arange(len(x)) == 0, 100, 1)[:, None],
}


@pytest.mark.parametrize("shape", FEW.values(), ids=FEW)
@pytest.mark.parametrize("regularisation", [1e-12, 1e-4, 1e3])
@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
def test_no_contribution_is_longer_than_claimed_even_where_terms_cancel(
    shape, regularisation, hard
):
    """Each record alone, against the bound: rounding must not lengthen it."""
    support_x, support_y, records = problem(*shape, records=8)
    support_x = hard(support_x)
    for only in range(8):
        alone = records._replace(mask=np.arange(8) == only)
        found = fast_sum(kernel(), Clip(), support_x, support_y, alone, regularisation)
        assert np.linalg.norm(found) <= Clip().record_norm


@pytest.mark.parametrize("jitter", [1.0, 1e-2, 1e-4])
def test_a_record_gone_from_the_front_does_not_shake_the_others(jitter):
    """All later records move one place up, and their sums round differently: by how much?

    With support points that nearly coincide, most of each gradient cancels. In float32 the others
    alone moved this sum by more than a tenth of what one record may.
    """
    support_x, support_y, few = problem(6, 3, records=64)
    support_x = support_x[:1] + jitter * support_x
    tiled = [np.tile(a, (40,) + (1,) * (a.ndim - 1)) for a in few[:3]]
    total = []
    for start in (0, 1):
        shifted = [a[start:] for a in tiled]
        pieces = [
            Records(*(np.resize(a[i : i + 512], (512, *a.shape[1:])) for a in shifted), mask)
            for i in range(0, len(shifted[0]), 512)
            for mask in [np.arange(512) < len(shifted[0]) - i]
        ]
        total.append(sum(fast_sum(kernel(), Clip(), support_x, support_y, p) for p in pieces))
    first = few._replace(mask=np.arange(64) == 0)
    alone = fast_sum(kernel(), Clip(), support_x, support_y, first)
    others = np.linalg.norm(total[0] - total[1] - alone)
    assert others < ROUNDING / 10


def test_a_record_whose_norm_overflows_is_left_out_and_harms_nothing():
    support_x, support_y, records = problem(*SHAPES["direct"], records=8)
    x, norms = records.x.copy(), records.norms.copy()
    x[3], norms[3] = 1e200, 1e300
    broken = records._replace(x=x, norms=norms)
    without = records._replace(mask=np.arange(8) != 3)
    for clip in (Clip(), Clip(bound=1.0)):
        found = fast_sum(kernel(), clip, support_x, support_y, broken)
        expected = fast_sum(kernel(), clip, support_x, support_y, without)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found - expected) <= clip.record_norm


def test_nothing_recompiles_from_call_to_call():
    support_x, support_y, records = problem(*SHAPES["low rank"])
    fast_sum(kernel(), Clip(), support_x, support_y, records)
    before = clipped_sum._cache_size(), ridge_points._support._cache_size()
    for seed in range(3):
        support_x, support_y, records = problem(*SHAPES["low rank"], seed=seed)
        fast_sum(kernel(), Clip(), support_x, support_y, records)
    assert (clipped_sum._cache_size(), ridge_points._support._cache_size()) == before
