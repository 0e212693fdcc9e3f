"""DP-GAN's gradients: each record by itself, no longer than the bound, wherever it stands."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from limbeck.batching import in_blocks
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.measure import teachers
from limbeck.measure.contributions.critic import CriticGradient, gradients_of
from limbeck.measure.rows import Block
from limbeck.models import discriminators
from limbeck.privacy.clipping import Clip

TABLE = Schema(
    classes=(0, 1),
    columns=tuple(Column(name, "numeric", minimum=0, maximum=1) for name in "abc"),
)
PICTURES = Schema(classes=(0, 1), image=ImageShape(12, 12))
NETS = [discriminators.for_schema(TABLE), discriminators.for_schema(PICTURES)]


def records(net, n=64, seed=0):
    width = TABLE.width if net is NETS[0] else PICTURES.width
    rng = np.random.default_rng(seed)
    x = jnp.asarray(rng.random((n, width)), jnp.float32)
    return x, jnp.eye(2)[rng.integers(0, 2, n)]


@pytest.mark.parametrize("net", NETS)
def test_they_are_the_gradients_of_each_record_clipped(net):
    weights, (x, y) = net.init(jax.random.key(0)), records(net, 6)
    contribution = CriticGradient(net, Clip(bound=0.1))

    def loss(weights, at):
        return jax.nn.softplus(-net.logits(weights, net.preprocess(x), y)[at])

    for at in range(6):
        block = Block(np.asarray(x), np.asarray(y).argmax(axis=1), np.arange(6) == at)
        found = contribution(weights, block)
        plain = ravel_pytree(jax.grad(loss)(weights, at))[0]
        plain = plain * min(1, 0.1 / float(jnp.linalg.norm(plain)))
        np.testing.assert_allclose(found * contribution.grid, plain, atol=1e-6)
        assert sum(int(v) ** 2 for v in found) <= contribution.l2_bound**2


@pytest.mark.parametrize("bound", [1e-19, 1e-30, 1e-3, 1e20])
def test_no_bound_is_too_small_or_too_large(bound):
    """In float32, whose squares underflow, a contribution could be five times as long as 1e-19."""
    net = NETS[0]
    weights, (x, y) = net.init(jax.random.key(0)), records(net, 6)
    contribution = CriticGradient(net, Clip(bound=bound))
    for at in range(6):
        block = Block(np.asarray(x), np.asarray(y).argmax(axis=1), np.arange(6) == at)
        found = contribution(weights, block)
        squares = sum(int(v) ** 2 for v in found)
        assert squares <= contribution.l2_bound**2
        if bound < 1:
            assert squares > 0.99 * contribution.l2_bound**2


@pytest.mark.parametrize("net", NETS)
def test_a_record_is_rounded_alike_wherever_it_stands(net):
    """To the last bit: else one that leaves would change what others contribute, at a kink much."""
    weights, (x, y) = net.init(jax.random.key(0)), records(net)
    one = jnp.repeat(x[:1], 64, axis=0), jnp.repeat(y[:1], 64, axis=0)
    found = gradients_of(net, weights, *one)
    np.testing.assert_array_equal(found, np.repeat(found[:1], 64, axis=0))
    many = np.repeat(np.asarray(x[:1]), teachers.AT_A_TIME, axis=0)
    seen = in_blocks(functools.partial(teachers._preprocess, net), len(many), many)
    np.testing.assert_array_equal(seen, np.repeat(seen[:1], len(seen), axis=0))
    labels = np.repeat(np.asarray(y[:1]), len(many), axis=0)
    first = functools.partial(teachers._initial_logits, net, teachers.TeacherConfig(teachers=1))
    logits = in_blocks(first, len(many), seen, labels)
    np.testing.assert_array_equal(logits, np.repeat(logits[:1], len(logits), axis=0))
