"""What a kernel is to the rest of the package.

A subclass writes `pair` and `diagonal` for scalars; the base class makes matrices of them, and
the partial derivatives that the closed-form gradients of DP-KIP need.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


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


def _over_pairs(function: Callable[..., Any]) -> Callable[..., Any]:
    over_columns = jax.vmap(function, in_axes=(0, None, 0))
    return jax.vmap(over_columns, in_axes=(0, 0, None))


def _with_diagonal(
    matrix: Float[Array, "n n"], diagonal: Float[Array, " n"]
) -> Float[Array, "n n"]:
    return jnp.where(jnp.eye(len(diagonal), dtype=bool), diagonal[:, None], matrix)
