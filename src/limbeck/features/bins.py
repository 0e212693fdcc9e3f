"""Features of tables: each number by its place among knots, each category by itself.

A number between the knots t_j < t_{j+1} becomes the two weights of linear interpolation,

    h_j = (t_{j+1} − v) / (t_{j+1} − t_j),      h_{j+1} = 1 − h_j,      all others zero,

so a linear readout of them is any piecewise linear function of the number. Categories are one-hot
already, and a constant one is the bias. Knots come from the schema's bounds, or from noisy counts.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.features.base import FeatureMap, unit_norm

# Bins of the histogram of a column, from which its knots are placed.
HISTOGRAM_BINS = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bins(FeatureMap):
    """Encoded rows of `dimension` coordinates in [−1, 1].

    `numbers` are the coordinates that are numbers, and `knots` those of each, equally many and
    rising from 0 to 1. All have unit norm.

    Examples
    --------
    >>> Bins(dimension=3, numbers=(0,), knots=((0.0, 0.5, 1.0),)).size
    6
    """

    dimension: int
    numbers: tuple[int, ...]
    knots: tuple[tuple[float, ...], ...]

    @property
    def size(self) -> int:
        """The bias, the coordinates that are no numbers, and a weight a knot."""
        return 1 + self.dimension - len(self.numbers) + sum(map(len, self.knots))

    @property
    def batch(self) -> int:
        """They are cheap."""
        return 1024

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Bias, other coordinates, weights."""
        values = (x + 1) / 2
        numbers = np.array(self.numbers, np.int32)
        others = np.setdiff1d(np.arange(self.dimension, dtype=np.int32), numbers)
        parts = [jnp.ones((len(x), 1), x.dtype), values[:, others]]
        if self.numbers:
            knots = jnp.asarray(np.array(self.knots), x.dtype)
            parts.append(_hats(values[:, numbers], knots).reshape(len(x), -1))
        return unit_norm(jnp.concatenate(parts, axis=1))

    def to_places(self, x: NDArray[np.floating]) -> NDArray[np.float64]:
        """Rows with each number by its place among its knots: 1.5 is halfway from knot 1 to 2.

        Knots may be a thousandth apart or a half; places move the features alike everywhere.
        """
        places = np.array(x, np.float64)
        for column, knots in zip(self.numbers, self.knots, strict=True):
            places[:, column] = np.interp((places[:, column] + 1) / 2, knots, np.arange(len(knots)))
        return places

    def from_places(
        self, places: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The rows at these places, and the slope of each coordinate with respect to its place."""
        x, slopes = places.copy(), np.ones_like(places)
        for column, knots in zip(self.numbers, self.knots, strict=True):
            at, gaps = places[:, column], np.diff(knots)
            x[:, column] = 2 * np.interp(at, np.arange(len(knots)), knots) - 1
            slopes[:, column] = 2 * gaps[np.clip(at.astype(np.intp), 0, len(gaps) - 1)]
        return x, slopes


def _hats(values: Float[Array, "n k"], knots: Float[Array, "k t"]) -> Float[Array, "n k t"]:
    """Weights of linear interpolation; beyond the first and last knot all on that knot."""
    place = jnp.clip(values, 0, 1)[:, :, None]
    left, right = knots[:, :-1], knots[:, 1:]
    share = jnp.clip((place - left) / (right - left), 0, 1)  # of each interval, what lies below
    ones, zeros = jnp.ones_like(place), jnp.zeros_like(place)
    return jnp.concatenate([ones, share], axis=2) - jnp.concatenate([share, zeros], axis=2)


def number_coordinates(schema: Schema) -> tuple[int, ...]:
    """Which encoded coordinates of a table are numbers or ranks, rather than yes or no."""
    found, start = [], 0
    for column in schema.columns:
        if column.kind in ("numeric", "integer", "ordinal"):
            found.append(start)
        start += column.width
    return tuple(found)


def even_knots(count: int) -> tuple[float, ...]:
    """Equally spaced from 0 to 1."""
    return tuple(np.linspace(0, 1, count).tolist())


def knots_of(
    histogram: NDArray[np.floating], deviation: float, rows: float, count: int
) -> tuple[float, ...]:
    """Knots where the records are: equal shares of the root of a noisy histogram over [0, 1].

    The root keeps a value that nearly all records have from taking all knots. Bins within three
    standard deviations of the noise count as empty. If the others do not hold half of the rows, the
    histogram tells too little, and the knots are even.

    Examples
    --------
    >>> knots_of(np.array([0.0, 0, 90, 10]), 1.0, 100, 3)[1] > 0.5
    True
    >>> knots_of(np.array([0.0, 0, 9, 0]), 2.0, 100, 3)
    (0.0, 0.5, 1.0)
    """
    seen = np.where(histogram > 3 * deviation, histogram, 0)
    if seen.sum() < rows / 2:
        return even_knots(count)
    mass = np.sqrt(seen)
    mass = mass + 0.1 * mass.mean()
    below = np.concatenate([[0], np.cumsum(mass)]) / mass.sum()
    edges = np.linspace(0, 1, len(mass) + 1)
    knots = np.interp(np.linspace(0, 1, count), below, edges)
    knots[0], knots[-1] = 0, 1
    return tuple(knots.tolist())
