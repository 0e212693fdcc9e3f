"""Features of rows of numbers and categories: a kernel for the numbers, one-hots for the rest.

    φ(x) = [ φ_num(numbers)/‖φ_num‖, one-hots/√k ] / √2          for k categorical columns,

of unit norm, because each of the k one-hots has norm one. Tables that lack numbers, or categories,
have the other part alone. As in DP-MERF (Harder et al. 2021, §4.3).
"""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.data.schema import Schema
from limbeck.features.base import FeatureMap, Weigh


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixed(FeatureMap):
    """`inner` takes the coordinates `numbers`; the others are of `choices` one-hot columns."""

    dimension: int
    numbers: tuple[int, ...]
    choices: int
    inner: FeatureMap | None

    @property
    def size(self) -> int:
        """Those of the numbers, and the other coordinates."""
        return (self.inner.size if self.inner else 0) + self.dimension - len(self.numbers)

    @property
    def batch(self) -> int:
        """As many as the inner map takes."""
        return self.inner.batch if self.inner else 1024

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Both parts."""
        parts = [self._choices(x)]
        if self.inner:
            parts.insert(0, self._share * self.inner(x[:, np.array(self.numbers)]))
        return jnp.concatenate(parts, axis=1)

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Σ_l w_l φ(x_l), the inner part as the inner map does it."""
        choices = self._choices(x)
        squares = jnp.sum(choices**2, axis=1) + (self._share**2 if self.inner else 0)
        w = weigh(jnp.sqrt(squares))
        parts = [w @ choices]
        if self.inner:
            numbers = x[:, np.array(self.numbers)]
            parts.insert(
                0, self.inner.total(numbers, lambda n: self._share * w / jnp.maximum(n, 1))
            )
        return jnp.concatenate(parts)

    @property
    def _share(self) -> float:
        return math.sqrt(0.5) if self.choices and self.inner else 1.0

    def _choices(self, x: Float[Array, "n d"]) -> Float[Array, "n k"]:
        others = np.setdiff1d(np.arange(self.dimension), np.array(self.numbers, np.int64))
        scale = self._share / math.sqrt(max(self.choices, 1))
        return scale * x[:, others]


def numbers_and_choices(schema: Schema) -> tuple[tuple[int, ...], int]:
    """The coordinates that are no one-hots, and how many categorical columns there are."""
    found, start, choices = [], 0, 0
    for column in schema.columns:
        if column.kind == "categorical":
            choices += 1
        else:
            found.append(start)
        start += column.width
    return tuple(found), choices
