"""The e-NTK of the small convolutional network by outer products is that of its definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.base import unit_norm
from limbeck.features.conv_ntk import ConvNTK

NETS = [ConvNTK(dimension=5, channels=4, width=6, logits=3), ConvNTK(dimension=5, channels=1)]


def plain(ntk, x):
    """vmap(grad) of the sum of the logits, all parameters, by a convolution of XLA's."""

    def logits(parameters, record):
        u, b, hidden, s, out, t = parameters
        made = jax.lax.conv_general_dilated(
            record[None, None], u[:, None, None], (1,), "VALID"
        )  # one record, channels, columns
        r = jax.nn.relu(made[0] + b[:, None]).T.ravel()
        return jnp.sum(jax.nn.relu(r @ hidden + s) @ out + t)

    parameters = (*ntk._parameters, jnp.zeros(ntk.logits))
    found = jax.vmap(lambda record: jax.grad(logits)(parameters, record))(x)
    return jnp.concatenate([leaf.reshape(len(x), -1) for leaf in jax.tree.leaves(found)], axis=1)


def records(n=9, d=5, seed=0):
    return jax.random.uniform(jax.random.key(seed), (n, d))


@pytest.mark.parametrize("ntk", NETS)
def test_the_kernel_is_that_of_the_gradients(ntk):
    ours, theirs = ntk(records()), unit_norm(plain(ntk, records()))
    assert ours.shape == (9, ntk.size)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


@pytest.mark.parametrize("ntk", NETS)
def test_norms_are_those_of_the_gradients(ntk):
    seen = []
    ntk.total(records(), lambda norms: seen.append(norms) or norms)
    np.testing.assert_allclose(seen[0], jnp.linalg.norm(plain(ntk, records()), axis=1), rtol=1e-5)


@pytest.mark.parametrize("ntk", NETS)
def test_a_total_is_the_weighted_sum_of_the_features(ntk):
    x, weights = records(), jnp.arange(9.0)
    total = ntk.total(x, lambda norms: weights / norms)
    np.testing.assert_allclose(total, weights @ ntk(x), atol=1e-5)


def test_totals_have_derivatives():
    ntk = NETS[0]
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).random((3, 5)))

        def loss(x):
            return jnp.sum(ntk.total(x, lambda norms: 1 / norms) ** 2)

        step = 1e-6 * jnp.eye(5)[2]
        change = (loss(x.at[1].add(step)) - loss(x.at[1].add(-step))) / 2e-6
        assert jax.grad(loss)(x)[1, 2] == pytest.approx(float(change), rel=1e-5)


def test_the_network_is_the_same_in_every_precision():
    """Moments are measured in float64, and generators trained in float32."""
    x = np.asarray(records())
    ntk = [ConvNTK(dimension=5, channels=4, width=6) for _ in range(2)]
    with jax.enable_x64(True):
        wide = ntk[0](jnp.asarray(x, jnp.float64))
    np.testing.assert_allclose(wide, ntk[1](jnp.asarray(x)), atol=1e-6)
