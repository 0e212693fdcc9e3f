"""How the coordinates of support points become what a feature map sees, and gradients come back.

A support point is x = B z for orthonormal columns B, or z itself; corrupted pixels (§5, Table 4 of
DP-KIP-ScatterNet) keep the noise they started from, whatever z is. All of it is public.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.batching import side_by_side
from limbeck.features.base import FeatureMap


class Canvas(NamedTuple):
    """The orthonormal columns, and which pixels of which point are noise for good."""

    basis: NDArray[np.float32] | None  # [d, p]; None for z as it is
    corrupted: NDArray[np.bool_]  # [m, d]
    noise: NDArray[np.float32]  # [m, d]

    @classmethod
    def plain(cls, basis: NDArray[np.floating], points: int) -> "Canvas":
        """Without corruption."""
        nothing = np.zeros((points, len(basis)), np.float32)
        return cls(np.asarray(basis, np.float32), nothing > 0, nothing)

    @classmethod
    def bare(cls, dimension: int, points: int) -> "Canvas":
        """Points as they are, without corruption."""
        nothing = np.zeros((points, dimension), np.float32)
        return cls(None, nothing > 0, nothing)


def draw(canvas: Canvas, z: Float[Array, "m p"]) -> Float[Array, "m d"]:
    """The points themselves."""
    x = z if canvas.basis is None else z @ jnp.asarray(canvas.basis).T
    return jnp.where(jnp.asarray(canvas.corrupted), jnp.asarray(canvas.noise), x)


def features(phi: FeatureMap, canvas: Canvas, z: NDArray[np.floating]) -> NDArray[np.float32]:
    """φ of every point."""
    pieces = _pieces(phi, canvas, z)
    return np.concatenate(list(side_by_side(lambda piece: _features(phi, *piece), pieces)))


def linearised(
    phi: FeatureMap, canvas: Canvas, z: NDArray[np.floating]
) -> tuple[NDArray[np.float32], Callable[[NDArray[np.floating]], NDArray[np.float32]]]:
    """φ of every point, and the function direction ↦ Jᵀ · direction.

    The latter makes of a gradient with respect to the features one in coordinates.
    """
    found = list(side_by_side(lambda piece: _linearised(phi, *piece), _pieces(phi, canvas, z)))

    def pull_back(direction: NDArray[np.floating]) -> NDArray[np.float32]:
        slices = [part for (part,) in _slices(phi, np.asarray(direction, np.float32))]
        backs = [back for _, back in found]
        pulled = side_by_side(lambda both: _pull(*both), zip(backs, slices, strict=True))
        return np.concatenate(list(pulled))

    return np.concatenate([value for value, _ in found]), pull_back


def jacobians(phi: FeatureMap, canvas: Canvas, z: NDArray[np.floating]) -> Float[Array, "m p f"]:
    """∂φ/∂z of every point."""
    found = side_by_side(lambda point: _jacobian(phi, canvas.basis, *point), _points(canvas, z))
    return jnp.stack(list(found))


@functools.partial(jax.jit, static_argnames=("phi",))
def _features(phi: FeatureMap, canvas: Canvas, z: Float[Array, "m p"]) -> Float[Array, "m f"]:
    return phi(draw(canvas, z))


@functools.partial(jax.jit, static_argnames=("phi",))
def _linearised(
    phi: FeatureMap, canvas: Canvas, z: Float[Array, "m p"]
) -> tuple[Float[Array, "m f"], Callable[..., Any]]:
    return jax.vjp(lambda z: phi(draw(canvas, z)), z)


@jax.jit
def _pull(back: Callable[..., Any], direction: Float[Array, "m f"]) -> Float[Array, "m p"]:
    (found,) = back(direction)
    return jnp.asarray(found)


@functools.partial(jax.jit, static_argnames=("phi",))
def _jacobian(
    phi: FeatureMap,
    basis: NDArray[np.float32] | None,
    x: Float[Array, " d"],
    corrupted: Bool[Array, " d"],
) -> Float[Array, "p f"]:
    directions = jnp.eye(len(x)) if basis is None else jnp.asarray(basis).T
    return phi.along(x, jnp.where(corrupted, 0, directions).astype(x.dtype))


def _points(
    canvas: Canvas, z: NDArray[np.floating]
) -> Iterator[tuple[Float[Array, " d"], NDArray[np.bool_]]]:
    """Every point, and its corrupted pixels."""
    x = draw(canvas, jnp.asarray(z, jnp.float32)).astype(jnp.float32)
    return zip(x, canvas.corrupted, strict=True)


def _slices(phi: FeatureMap, *arrays: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Pieces of one size, up to twice what the map has at a time; the last may be shorter.

    Few points are done sooner in one piece than in two threads.
    """
    m = len(arrays[0])
    size = -(-m // -(-m // (2 * phi.batch)))
    for start in range(0, m, size):
        yield tuple(array[start : start + size] for array in arrays)


def _pieces(
    phi: FeatureMap, canvas: Canvas, z: NDArray[np.floating]
) -> Iterator[tuple[Canvas, Float[Array, "m p"]]]:
    for corrupted, noise, part in _slices(phi, canvas.corrupted, canvas.noise, z):
        yield Canvas(canvas.basis, corrupted, noise), jnp.asarray(part, jnp.float32)
