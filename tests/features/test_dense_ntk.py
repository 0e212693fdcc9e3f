"""The e-NTK of fully connected networks by outer products is that of its definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.base import unit_norm
from limbeck.features.dense_ntk import DenseNTK

NETS = [(7,), (6, 5), (4, 3, 5)]


def plain(ntk, x):
    """vmap(grad) of the sum of the logits, all parameters."""

    def logits(layers, record):
        for w, b in layers[:-1]:
            record = jax.nn.relu(record @ w + b)
        return jnp.sum(record @ layers[-1][0] + layers[-1][1])

    found = jax.vmap(lambda record: jax.grad(logits)(ntk.layers, record))(x)
    return jnp.concatenate([leaf.reshape(len(x), -1) for leaf in jax.tree.leaves(found)], axis=1)


def records(n=9, d=5, seed=0):
    return jax.random.uniform(jax.random.key(seed), (n, d))


@pytest.mark.parametrize("widths", NETS)
def test_the_kernel_is_that_of_the_gradients(widths):
    ntk, x = DenseNTK(dimension=5, widths=widths, logits=3), records()
    ours, theirs = ntk(x), unit_norm(plain(ntk, x))
    assert ours.shape == (9, ntk.size)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


@pytest.mark.parametrize("widths", NETS)
def test_norms_are_those_of_the_gradients(widths):
    ntk, x, seen = DenseNTK(dimension=5, widths=widths, logits=3), records(), []
    ntk.total(x, lambda norms: seen.append(norms) or norms)
    np.testing.assert_allclose(seen[0], jnp.linalg.norm(plain(ntk, x), axis=1), rtol=1e-5)


@pytest.mark.parametrize("widths", NETS)
def test_a_total_is_the_weighted_sum_of_the_features(widths):
    ntk, x = DenseNTK(dimension=5, widths=widths), records()
    weights = jnp.arange(9.0)
    total = ntk.total(x, lambda norms: weights / norms)
    np.testing.assert_allclose(total, weights @ ntk(x), atol=1e-5)


@pytest.mark.parametrize("widths", NETS)
@pytest.mark.parametrize("n", [2, 40])
def test_comparisons_with_a_mean_are_those_of_the_total(widths, n):
    """By pairs for few records, through the sum for many; values and derivatives."""
    ntk, x = DenseNTK(dimension=5, widths=widths, logits=3), records(n)
    mean = jax.random.normal(jax.random.key(1), (ntk.size,))

    def plain(x):
        total = ntk.total(x, lambda norms: 1 / (1 + norms))
        return jnp.sum(total**2), mean @ total

    def ours(x):
        return ntk.compared(x, mean, lambda norms: 1 / (1 + norms))

    np.testing.assert_allclose(ours(x), plain(x), rtol=1e-4)
    for one, other in zip(jax.jacrev(ours)(x), jax.jacrev(plain)(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_totals_have_derivatives_and_keep_the_precision_of_the_records():
    ntk = DenseNTK(dimension=5, widths=(4, 3))

    def loss(x):
        return jnp.sum(ntk.total(x, lambda norms: 1 / norms) ** 2)

    assert jnp.isfinite(jax.grad(loss)(jnp.zeros((2, 5)))).all()
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).random((3, 5)))
        assert ntk.total(x, lambda norms: 1 / norms).dtype == jnp.float64
        step = 1e-6 * jnp.eye(5)[2]
        change = (loss(x.at[1].add(step)) - loss(x.at[1].add(-step))) / 2e-6
        assert jax.grad(loss)(x)[1, 2] == pytest.approx(float(change), rel=1e-5)


def test_the_seed_is_the_network():
    x = records()
    same, other = (DenseNTK(dimension=5, widths=(7,), seed=seed)(x) for seed in (0, 1))
    np.testing.assert_array_equal(same, DenseNTK(dimension=5, widths=(7,))(x))
    assert np.abs(same - other).max() > 0.01


def test_the_network_is_the_same_in_every_precision():
    """Moments are measured in float64, and generators trained in float32."""
    ntk, x = [DenseNTK(dimension=5, widths=(7,)) for _ in range(2)], np.asarray(records())
    with jax.enable_x64(True):
        wide = ntk[0](jnp.asarray(x, jnp.float64))
    np.testing.assert_allclose(wide, ntk[1](jnp.asarray(x)), atol=1e-6)
