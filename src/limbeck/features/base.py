"""What kernels and feature maps are to the rest of the package.

A subclass of `InnerProductKernel` writes `pair` and `diagonal` for scalars; the base class makes
matrices of them, and the partial derivatives that the closed-form gradients of DP-KIP need. A
`FeatureMap` writes the features themselves, and its kernel is their inner product.
"""

import abc
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from limbeck.batching import CORES, side_by_side

# From the norms of records' features to what each is multiplied by.
Weigh = Callable[[Float[Array, " n"]], Float[Array, " n"]]

# So many pieces of records are made into features in one call, of so many numbers at most.
PIECES, NUMBERS = 16, 2**22


class Partials(NamedTuple):
    """k and its partial derivatives, entry by entry, for rows x and columns s."""

    k: Float[Array, "n m"]
    by_dot: Float[Array, "n m"]
    by_norm_s: Float[Array, "n m"]


class InnerProductKernel(abc.ABC):
    """A kernel that sees its arguments only through ⟨x, s⟩, ‖x‖² and ‖s‖².

    Any orthonormal change of coordinates leaves such a kernel unchanged, and its derivative with
    respect to s is a combination of x and s: ∂k/∂s = k_dot · x + 2 k_norm · s.
    """

    @abc.abstractmethod
    def pair(
        self, dot: Float[Array, ""], norm_x: Float[Array, ""], norm_y: Float[Array, ""]
    ) -> Float[Array, ""]:
        """k from ⟨x, y⟩, ‖x‖² and ‖y‖²."""

    @abc.abstractmethod
    def diagonal(self, norm: Float[Array, ""]) -> Float[Array, ""]:
        """k(x, x) from ‖x‖², with a finite derivative."""

    def matrix(self, x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
        """All pairs of rows of x and rows of y."""
        return self.from_gram(x @ y.T, jnp.sum(x**2, axis=1), jnp.sum(y**2, axis=1))

    def symmetric(self, x: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """All pairs of rows of x; the diagonal is exact and differentiable."""
        norms = jnp.sum(x**2, axis=1)
        return _with_diagonal(self.matrix(x, x), jax.vmap(self.diagonal)(norms))

    def from_gram(
        self, dots: Float[Array, "n m"], norms_x: Float[Array, " n"], norms_y: Float[Array, " m"]
    ) -> Float[Array, "n m"]:
        """All pairs, from their inner products and squared norms."""
        return _over_pairs(self.pair)(dots, norms_x, norms_y)

    def partials(
        self, dots: Float[Array, "n m"], norms_x: Float[Array, " n"], norms_s: Float[Array, " m"]
    ) -> Partials:
        """k, ∂k/∂⟨x, s⟩ and ∂k/∂‖s‖² for all pairs."""

        def one(
            dot: Float[Array, ""], norm_x: Float[Array, ""], norm_s: Float[Array, ""]
        ) -> Partials:
            k, (by_dot, by_norm_s) = jax.value_and_grad(self.pair, argnums=(0, 2))(
                dot, norm_x, norm_s
            )
            return Partials(k, by_dot, by_norm_s)

        return _over_pairs(one)(dots, norms_x, norms_s)


class FeatureMap(abc.ABC):
    """A finite feature map φ; its kernel is ⟨φ(x), φ(s)⟩.

    Subclasses are frozen dataclasses whose fields are public settings, so that one can be rebuilt
    from its fields and can be a static argument of a compiled function.
    """

    @property
    def batch(self) -> int:
        """How many records are worked on at a time: as many as the caches hold."""
        return 32

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of features F."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Features of unit norm or zero, one row a record, each a function of that record alone.

        Differentiable everywhere, in the precision of `x`.
        """

    def along(self, x: Float[Array, " d"], directions: Float[Array, "p d"]) -> Float[Array, "p f"]:
        """∂φ at one record along each direction; overridden where directions can share work.

        The transpose of the way back: a map may have a way back of its own making.
        """
        _, back = jax.vjp(self, x[None])
        forward = jax.linear_transpose(back, jax.ShapeDtypeStruct((1, self.size), x.dtype))

        def along(direction: Float[Array, " d"]) -> Float[Array, " f"]:
            (found,) = forward((direction[None],))
            return jnp.asarray(found)[0]

        return jax.lax.map(along, directions, batch_size=self.batch)

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Σ_l w_l φ(x_l) with w = weigh(‖φ(x_1)‖, ...); overridden where φ itself is too large."""
        features = self(x)
        return weigh(jnp.linalg.norm(features, axis=1)) @ features

    def compared(
        self, x: Float[Array, "n d"], mean: Float[Array, " f"], weigh: Weigh
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """‖Σ_l w_l φ(x_l)‖² and ⟨mean, Σ_l w_l φ(x_l)⟩; overridden where the sum can be spared."""
        total = self.total(x, weigh)
        return jnp.sum(total**2), mean @ total


def features_of(phi: FeatureMap, x: NDArray[np.floating]) -> NDArray[np.float32]:
    """φ of many records, some at a time.

    The compiled shape is always the same, so that the features of a record are the same numbers,
    to the last bit, wherever it stands and whoever stands beside it.
    """
    found = np.empty((len(x), phi.size), np.float32)
    room = min(PIECES, max(1, NUMBERS // (phi.batch * phi.size)))
    pieces = -(-len(x) // phi.batch)
    size = phi.batch * min(room, max(1, -(-pieces // CORES)))

    def fill(start: int) -> None:
        some = x[start : start + size]
        padded = np.zeros((room * phi.batch, x.shape[1]), np.float32)
        padded[: len(some)] = some
        made = np.asarray(_of_pieces(phi, padded, -(-len(some) // phi.batch)))
        found[start : start + len(some)] = made[: len(some)]

    for _ in side_by_side(fill, range(0, len(x), size)):
        pass
    return found


@functools.partial(jax.jit, static_argnames=("phi",))
def _of_pieces(phi: FeatureMap, x: Float[Array, "n d"], pieces: int) -> Float[Array, "n f"]:
    """φ of the first so many pieces, in memory that each of them finds warm."""

    def one(piece: Int[Array, ""], found: Float[Array, "n f"]) -> Float[Array, "n f"]:
        start = piece * phi.batch
        made = phi(jax.lax.dynamic_slice_in_dim(x, start, phi.batch))
        return jax.lax.dynamic_update_slice_in_dim(found, made, start, axis=0)

    return jax.lax.fori_loop(0, pieces, one, jnp.zeros((len(x), phi.size), x.dtype))


def unit_norm(x: Float[Array, "n f"], axis: int = 1) -> Float[Array, "n f"]:
    """Rows (columns, along axis 0) of norm one, or zero, and then so is the derivative.

    Zero they are below 1e-15, where squares are too small for float32 to tell the norm.
    """
    squares = jnp.sum(x**2, axis=axis, keepdims=True)
    some = squares > 1e-30
    return jnp.where(some, x / jnp.sqrt(jnp.where(some, squares, 1)), 0)


def _over_pairs(function: Callable[..., Any]) -> Callable[..., Any]:
    over_columns = jax.vmap(function, in_axes=(0, None, 0))
    return jax.vmap(over_columns, in_axes=(0, 0, None))


def _with_diagonal(
    matrix: Float[Array, "n n"], diagonal: Float[Array, " n"]
) -> Float[Array, "n n"]:
    return jnp.where(jnp.eye(len(diagonal), dtype=bool), diagonal[:, None], matrix)
