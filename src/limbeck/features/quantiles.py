"""The quantile map: numbers by their place among the others, and back.

A column of money is mostly zeros, one of ages is spread, a measurement lies in the middle of its
bounds: a kernel with one length scale sees little of them. So a number is mapped by a piecewise
linear function that rises from 0 to 1, by the mass of the bins of a histogram,

    mass of a bin = √count, and a tenth of the mean of all.

The root keeps a value that nearly all records have from taking all of the scale. Whole numbers have
a bin each, if there are at most `BINS`. Otherwise the two bounds have one each, where values are
clamped and amounts are often zero, and the others are equally wide. A value with a bin of its own
stands in its middle, and from every place in the bin the way back is to this value.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Schema

BINS = 256
# How far the bins of the bounds reach beyond them.
MARGIN = 0.01


@dataclasses.dataclass(frozen=True)
class QuantileMap:
    """Maps the coordinates `numbers` of encoded records; the `edges` of bins are mapped to `at`."""

    numbers: Sequence[int] = ()
    edges: Sequence[Sequence[float]] = ()
    at: Sequence[Sequence[float]] = ()

    def forward(self, x: NDArray[np.floating]) -> NDArray[np.float64]:
        """Records with quantiles instead of numbers."""
        found = np.array(x, np.float64)
        for column, edges, at in zip(self.numbers, self.edges, self.at, strict=True):
            found[:, column] = np.interp(_inside(found[:, column], edges), edges, at)
        return found

    def inverse(self, quantiles: NDArray[np.floating]) -> NDArray[np.float32]:
        """The records with these quantiles; whole numbers are not rounded yet."""
        found = np.array(quantiles, np.float64)
        for column, edges, at in zip(self.numbers, self.edges, self.at, strict=True):
            found[:, column] = np.clip(np.interp(found[:, column], at, edges), 0, 1)
        return found.astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        """As lists; `QuantileMap(**...)` reads it."""
        edges, at = ([list(part) for part in parts] for parts in (self.edges, self.at))
        return {"numbers": list(self.numbers), "edges": edges, "at": at}


def edges_of(schema: Schema) -> list[list[float]]:
    """The edges of the bins of each column of numbers or ranks, on the scale of encoded values."""
    found = []
    for column in schema.columns:
        if column.kind not in ("numeric", "integer", "ordinal"):
            continue
        values = len(column.domain)
        if column.kind == "integer":
            values = int(column.maximum - column.minimum) + 1
        if 1 < values <= BINS:
            edges = (np.arange(values + 1) - 0.5) / (values - 1)
        else:
            edges = np.array([-MARGIN, *np.linspace(0, 1, BINS - 1), 1 + MARGIN])
        found.append(edges.tolist())
    return found


def thresholds_of(edges: Sequence[float]) -> tuple[float, ...]:
    """What separates the bins: a value belongs to the bin with the number of those it reaches.

    A lower bound with a bin of its own includes the bound itself.
    """
    inner = list(edges[1:-1])
    if edges[1] <= 0:
        inner[0] = float(np.nextafter(0.0, 1.0))
    return tuple(inner)


def quantiles_of(histogram: NDArray[np.floating], deviation: float, rows: float) -> list[float]:
    """What the edges are mapped to, by a noisy histogram whose noise has this standard deviation.

    Bins within three deviations count as empty. If the others do not hold half of the rows, the
    histogram tells too little, and all bins are alike.

    Examples
    --------
    >>> [round(q, 2) for q in quantiles_of(np.array([0.0, 81, 9, 0]), 2.0, 90)]
    [0.0, 0.02, 0.73, 0.98, 1.0]
    >>> quantiles_of(np.array([3.0, -1, 5, 2]), 2.0, 90)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    seen = np.where(histogram > 3 * deviation, histogram, 0)
    tells = seen.any() and seen.sum() >= rows / 2  # a noisy number of rows may be below zero
    mass = np.sqrt(seen) if tells else np.ones_like(seen)
    below = np.concatenate([[0], np.cumsum(mass + 0.1 * mass.mean())])
    return [float(part) for part in below / below[-1]]


def _inside(x: NDArray[np.float64], edges: Sequence[float]) -> NDArray[np.float64]:
    """Values at bounds that have a bin of their own, to the middle of it."""
    if edges[1] > 0:
        return x
    return np.where(x <= 0, -MARGIN / 2, np.where(x >= 1, 1 + MARGIN / 2, x))
