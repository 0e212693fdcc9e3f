"""Features of tables: three parts of unit norm, and the means of what is drawn."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import mixed
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier
from limbeck.features.mixed import Mixed, between_knots

COLUMNS = ((1, "number"), (3, "choice"), (1, "yes-no"), (1, "number"), (2, "choice"))
INNER = [
    DenseNTK(dimension=2, widths=(5,)),
    Fourier(dimension=2, count=6, length_scale=0.5),
]


def rows(n=8, seed=0):
    rng = np.random.default_rng(seed)
    parts = [
        rng.random((n, 1)),
        np.eye(3)[rng.integers(0, 3, n)],
        rng.integers(0, 2, (n, 1)),
        rng.random((n, 1)),
        np.eye(2)[rng.integers(0, 2, n)],
    ]
    return jnp.asarray(np.concatenate(parts, axis=1), jnp.float32)


def columns(x):
    """What each column holds, one after the other."""
    yes = x[:, 4:5]
    return [
        between_knots(x[:, :1]),
        x[:, 1:4],
        jnp.concatenate([1 - yes, yes], axis=1),
        between_knots(x[:, 5:6]),
        x[:, 6:],
    ]


def plain(phi, x):
    """By the definition, with pairs one after the other."""
    psi, (a, b, c) = columns(x), phi.shares
    pairs = [
        jnp.einsum("np,nq->npq", p, q).reshape(len(x), -1)
        for p, q in itertools.combinations(psi, 2)
    ]
    parts = [(c / 10) ** 0.5 * pair for pair in pairs] + [(b / 5) ** 0.5 * part for part in psi]
    return jnp.concatenate([a**0.5 * phi.inner(x[:, jnp.array([0, 5])]), *parts], axis=1)


@pytest.mark.parametrize("inner", INNER)
def test_the_kernel_is_that_of_the_definition(inner):
    phi, x = Mixed(columns=COLUMNS, inner=inner, shares=(0.5, 0.3, 0.2)), rows()
    ours, theirs = phi(x), plain(phi, x)
    assert ours.shape == (8, phi.size)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)
    np.testing.assert_allclose(jnp.sum(ours**2, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("inner", INNER)
def test_norms_are_those_of_the_features(inner):
    phi, seen = Mixed(columns=COLUMNS, inner=inner), []
    shares = rows().at[:, 1:4].set(0.3).at[:, 4].set(0.2)
    phi.total(shares, lambda norms: seen.append(norms) or norms)
    np.testing.assert_allclose(seen[0], jnp.linalg.norm(plain(phi, shares), axis=1), rtol=1e-5)
    assert seen[0].max() < 1


@pytest.mark.parametrize("inner", INNER)
def test_a_total_is_the_weighted_sum_of_the_features(inner):
    phi, x, weights = Mixed(columns=COLUMNS, inner=inner), rows(), jnp.arange(8.0)
    total = phi.total(x, lambda norms: weights / norms)
    np.testing.assert_allclose(total, weights @ phi(x), atol=1e-5)


def test_shares_have_the_mean_of_what_is_drawn_by_them():
    """Exactly: the mean over all rows that can be drawn, each with its probability."""
    phi = Mixed(columns=COLUMNS, inner=None)
    row = jnp.array([0.3, 0.2, 0.5, 0.3, 0.6, 0.8, 0.1, 0.9])
    mean = 0
    for i, yes, j in itertools.product(range(3), range(2), range(2)):
        share = row[1 + i] * (row[4] if yes else 1 - row[4]) * row[6 + j]
        drawn = jnp.concatenate(
            [row[:1], jnp.eye(3)[i], jnp.array([float(yes)]), row[5:6], jnp.eye(2)[j]]
        )
        mean = mean + share * phi(drawn[None])[0]
    np.testing.assert_allclose(phi.total(row[None], jnp.ones_like), mean, atol=1e-6)


def test_a_number_has_unit_norm_between_knots_and_is_nearest_to_its_own():
    v = jnp.linspace(0, 1, 71)[:, None]
    found = between_knots(v)
    np.testing.assert_allclose(jnp.sum(found**2, axis=1), 1, atol=1e-6)
    nearest = np.rint(np.asarray(v[:, 0]) * (mixed.KNOTS - 1) - 1e-6)
    np.testing.assert_array_equal(found.argmax(axis=1), nearest)
    assert jnp.isfinite(jax.grad(lambda v: between_knots(v)[:, 1].sum())(v)).all()


def test_tables_of_one_kind_have_the_parts_that_are_there():
    x = rows()
    alone = Mixed(columns=((1, "number"), (1, "number")), inner=INNER[1])
    np.testing.assert_allclose(jnp.sum(alone(x[:, jnp.array([0, 5])]) ** 2, axis=1), 1, atol=1e-6)
    choice = Mixed(columns=((3, "choice"),), inner=None)
    np.testing.assert_allclose(choice(x[:, 1:4])[:, :3], x[:, 1:4], atol=1e-6)
    assert choice.size == 3 + 9
