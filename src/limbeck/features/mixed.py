"""Features of rows of a table: a kernel for the numbers, every column by itself, and all pairs.

What the j-th of K columns holds is a vector ψ_j of unit norm: a one-hot for a category, [1 − b, b]
for yes or no, and for a number that is the share t of the way from one of some even knots to the
next,

    ψ_j = (0, ..., cos πt/2, sin πt/2, ..., 0).

With them and the features φ of the numbers, of unit norm as well,

    [ √a φ,  √(b/K) [ψ_j]_j,  √(2c/K(K−1)) [ψ_i ⊗ ψ_j]_{i<j} ],         a + b + c = 1,

has unit norm. DP-MERF (Harder et al. 2021, §4.3) has the first part and the categories of the
second, which tell what a class has in each column. The pairs tell what comes with what.

A generator has shares in place of a choice. The second and third part are linear in the shares of
each column, and so they are the mean over what is drawn, where each column is drawn by itself. All
pairs are an outer product, and a sum over records is one product of matrices. What of that matrix
is not above the diagonal is left at zero.
"""

import dataclasses
import functools
import itertools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.features.base import FeatureMap, Weigh

Kind = Literal["number", "choice", "yes-no"]
KNOTS = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixed(FeatureMap):
    """Of rows whose `columns` have these widths and kinds.

    `inner` takes the numbers; it is None where there are none. `shares` are a, b and c.

    Examples
    --------
    >>> Mixed(columns=((1, "number"), (3, "choice")), inner=None).size  # 11 + 11²
    132
    """

    columns: tuple[tuple[int, Kind], ...]
    inner: FeatureMap | None
    shares: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)

    @property
    def size(self) -> int:
        """Of all three parts."""
        singles = self._ends[-1]
        return (self.inner.size if self.inner else 0) + singles + singles**2

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """One record after another; for few records."""

        def one(row: Float[Array, " d"]) -> Float[Array, " f"]:
            return self.total(row[None], lambda norms: 1 / norms)

        return jax.lax.map(one, x)

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Σ_l w_l φ(x_l), by matrix products."""
        psi, a, (b, c) = self._columns(x), self._scale[0], self._scale[1:]
        squares = psi**2 @ jnp.asarray(self._owner[:, None] == range(len(self.columns)), x.dtype)
        single, fourth = jnp.sum(squares, axis=1), jnp.sum(squares**2, axis=1)
        w = weigh(jnp.sqrt(a**2 + b**2 * single + c**2 * (single**2 - fourth) / 2))
        pairs = jnp.where(self._above, (w[:, None] * psi).T @ psi, 0)
        parts = [b * (w @ psi), c * pairs.ravel()]
        if self.inner:
            numbers = x[:, self._numbers]
            parts.insert(0, self.inner.total(numbers, lambda norms: a * w / jnp.maximum(norms, 1)))
        return jnp.concatenate(parts)

    @functools.cached_property
    def _scale(self) -> tuple[float, float, float]:
        """What each part is multiplied by, if only those parts count that are there."""
        a, b, c = self.shares
        k, total = len(self.columns), (a if self.inner else 0) + b + (c if self._pairs else 0)
        a, b, c = a / total, b / total, c / total
        return (
            math.sqrt(a) if self.inner else 0,
            math.sqrt(b / k),
            math.sqrt(c / self._pairs) if self._pairs else 0,
        )

    @property
    def _pairs(self) -> int:
        return math.comb(len(self.columns), 2)

    def _columns(self, x: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """All ψ_j."""
        parts, start = [], 0
        for width, kind in self.columns:
            part = x[:, start : start + width]
            if kind == "number":
                part = between_knots(part)
            elif kind == "yes-no":
                part = jnp.concatenate([1 - part, part], axis=1)
            parts.append(part)
            start += width
        return jnp.concatenate(parts, axis=1)

    @functools.cached_property
    def _ends(self) -> tuple[int, ...]:
        """Where ψ_j begin and end."""
        widths = {"number": KNOTS, "yes-no": 2}
        taken = [widths.get(kind, width) for width, kind in self.columns]
        return tuple(itertools.accumulate(taken, initial=0))

    @property
    def _owner(self) -> NDArray[np.int64]:
        """The column of each coordinate."""
        return np.repeat(np.arange(len(self.columns)), np.diff(self._ends))

    @functools.cached_property
    def _above(self) -> NDArray[np.bool_]:
        """Of the products of two coordinates, those of one column and a later one."""
        return self._owner[:, None] < self._owner

    @functools.cached_property
    def _numbers(self) -> NDArray[np.int32]:
        kinds = np.repeat([kind for _, kind in self.columns], [width for width, _ in self.columns])
        return np.flatnonzero(kinds == "number").astype(np.int32)


def between_knots(v: Float[Array, "n 1"]) -> Float[Array, "n k"]:
    """Numbers by their place between even knots."""
    place = jnp.clip(v, 0, 1) * (KNOTS - 1)
    away = jnp.clip(jnp.abs(place - jnp.arange(KNOTS, dtype=v.dtype)), 0, 1)
    return jnp.cos(math.pi / 2 * away)


def columns_of(schema: Schema) -> tuple[tuple[int, Kind], ...]:
    """The widths and kinds of the columns of a table."""
    kinds: dict[str, Kind] = {"categorical": "choice", "boolean": "yes-no"}
    return tuple((column.width, kinds.get(column.kind, "number")) for column in schema.columns)
