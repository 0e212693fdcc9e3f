"""The closed form against neural-tangents' numbers, and its behaviour where slopes are infinite."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.fc_ntk import FCNTK

# The settings under which the golden numbers were computed.
SETTINGS = {"a": (2.0, 0.01), "b": (1.69, 0.0)}
CASES = [(d, depth, v) for d in (12, 784, 3072) for depth in (1, 2, 3) for v in SETTINGS]


@pytest.fixture(scope="module")
def numbers(golden):
    with np.load(golden / "fc_ntk.npz") as data:
        return dict(data)


def kernel(dimension, depth=1, variant="a"):
    weight_variance, bias_variance = SETTINGS[variant]
    return FCNTK(
        dimension=dimension,
        depth=depth,
        weight_variance=weight_variance,
        bias_variance=bias_variance,
    )


@pytest.mark.parametrize(("dimension", "depth", "variant"), CASES)
def test_agrees_with_neural_tangents(numbers, dimension, depth, variant):
    x, y = numbers[f"x_{dimension}"], numbers[f"y_{dimension}"]
    ours = kernel(dimension, depth, variant).matrix(jnp.asarray(x), jnp.asarray(y))
    theirs = numbers[f"ntk_{dimension}_depth{depth}_{variant}"]
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6 * np.abs(theirs).max())


@pytest.mark.parametrize(("dimension", "depth", "variant"), CASES)
def test_agrees_with_neural_tangents_on_one_set(numbers, dimension, depth, variant):
    """On the diagonal theirs is an arccos of nearly one in float32, good to 5e-4; ours is exact."""
    ours = kernel(dimension, depth, variant).symmetric(jnp.asarray(numbers[f"x_{dimension}"]))
    theirs = numbers[f"ntk_self_{dimension}_depth{depth}_{variant}"]
    off = ~np.eye(len(theirs), dtype=bool)
    np.testing.assert_allclose(ours[off], theirs[off], rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(np.diag(ours), np.diag(theirs), rtol=6e-4)


def test_is_the_tangent_kernel_of_a_wide_network():
    """⟨∂f/∂θ, ∂f/∂θ⟩ of a network of width 16384, NTK parameterisation; error about 1/√width."""
    width, dimension, depth = 16384, 5, 1
    rng = np.random.default_rng(0)
    sizes = [dimension] + [width] * depth + [1]
    shapes = list(itertools.pairwise(sizes))
    parameters = [(rng.normal(size=s), rng.normal(size=s[1])) for s in shapes]

    def network(parameters, x):
        for layer, (w, b) in enumerate(parameters):
            x = np.sqrt(2 / w.shape[0]) * x @ w + 0.1 * b
            x = jax.nn.relu(x) if layer < depth else x
        return x[0]

    x, y = jnp.asarray(rng.normal(size=(2, dimension)), jnp.float32)
    gradients = [jax.grad(network)(parameters, point) for point in (x, y)]
    products = jax.tree.map(lambda a, b: jnp.vdot(a, b), *gradients)
    empirical = float(sum(jax.tree.leaves(products)))
    closed_form = float(kernel(dimension, depth).matrix(x[None], y[None])[0, 0])
    assert closed_form == pytest.approx(empirical, rel=0.05)


@pytest.mark.parametrize("depth", [1, 3])
def test_gradients_are_finite_at_coincident_and_zero_points(depth):
    points = jnp.asarray([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, -2.0, -3.0]])
    gradient = jax.grad(lambda x: kernel(3, depth).symmetric(x).sum())(points)
    crossed = jax.grad(lambda x: kernel(3, depth).matrix(x, points).sum())(points)
    assert np.isfinite(gradient).all()
    assert np.isfinite(crossed).all()


def test_the_diagonal_is_the_limit_of_the_pairs():
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        x = jnp.asarray(rng.normal(size=(4, 6)))
        near = x + 1e-8 * rng.normal(size=x.shape)
        k = kernel(6, depth=2)
        np.testing.assert_allclose(np.diag(k.symmetric(x)), np.diag(k.matrix(x, near)), rtol=1e-6)


def test_partials_are_the_derivatives():
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x, s = jnp.asarray(rng.normal(size=(2, 3, 4)))
        k = kernel(4)
        found = k.partials(x @ s.T, jnp.sum(x**2, 1), jnp.sum(s**2, 1))
        by_s = jax.jacobian(lambda s: k.matrix(x, s).sum(axis=0).sum())(s)
        rebuilt = found.by_dot.T @ x + 2 * found.by_norm_s.sum(axis=0)[:, None] * s
        np.testing.assert_allclose(rebuilt, by_s, rtol=1e-10)


def test_is_positive_definite_on_distinct_points():
    x = jnp.asarray(np.random.default_rng(3).normal(size=(30, 8)))
    assert np.linalg.eigvalsh(kernel(8).symmetric(x)).min() > 0
