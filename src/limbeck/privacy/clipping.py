"""What one record can do to a sum, at most.

Noise is drawn for a `Bounded` only, and a `Bounded` is made only here, by whoever multiplied each
record's contribution with the factors that a `Clip` gave for its norm.
"""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.privacy.budget import Adjacency

# Contributions are bounded in exact arithmetic and summed in float64. The bound that is noised is
# larger than the one that is clipped to, by far more than the rounding of all records together.
ROUNDING = 1e-3

# Squares of shorter norms leave the range of float64.
SHORTEST = 1e-100

_MADE_HERE = object()


class Bounded:
    """A sum over records, each contributing a vector of norm at most `record_norm`.

    **Guarantee.** Adding or removing one record moves `value` by at most `record_norm` in L2,
    replacing one by at most twice that. Each record took part with `sampling_probability`,
    independently of the others.
    """

    def __init__(
        self, value: np.ndarray, record_norm: float, sampling_probability: float, made: object
    ) -> None:
        if made is not _MADE_HERE:
            raise TypeError("a Bounded is made by limbeck.privacy.clipping only")
        self.value = value
        self.record_norm = record_norm
        self.sampling_probability = sampling_probability

    def l2_sensitivity(self, adjacency: Adjacency) -> float:
        """How far `value` can be from that of a neighbour."""
        return adjacency.records_changed * self.record_norm


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clip:
    """Scale contributions down to norm `bound`; or, with `bound` None, all to norm one.

    Normalised contributions need no constant to tune: with Adam the scale of a gradient cancels,
    and the papers' constants of 1e-6 clip every record anyway.
    """

    bound: float | None = None

    @property
    def record_norm(self) -> float:
        """The norm that noise must be scaled to."""
        return (1.0 if self.bound is None else self.bound) * (1 + ROUNDING)

    def factors(self, norms: Float[Array, " b"]) -> Float[Array, " b"]:
        """What to multiply each contribution by.

        A contribution whose norm cannot be trusted (infinite, not a number, or so short that its
        square underflows) is left out.

        Examples
        --------
        >>> Clip(bound=1.0).factors(jnp.array([0.5, 4.0])).tolist()
        [1.0, 0.25]
        """
        measurable = (norms > SHORTEST) & jnp.isfinite(norms)
        safe = jnp.where(measurable, norms, 1)
        if self.bound is None:
            return jnp.where(measurable, 1 / safe, 0)
        return jnp.where(jnp.isfinite(norms), jnp.minimum(1, self.bound / safe), 0)

    def bounded(self, clipped_sum: np.ndarray, sampling_probability: float = 1.0) -> Bounded:
        """State that `clipped_sum` is a sum of contributions scaled by `factors`."""
        return Bounded(clipped_sum, self.record_norm, sampling_probability, _MADE_HERE)


def count(rows: int) -> Bounded:
    """The number of records: each contributes exactly one."""
    return Bounded(np.asarray(rows, np.float64), 1.0, 1.0, _MADE_HERE)


def histograms(positions: np.ndarray, bins: int) -> Bounded:
    """How many records are in each of `bins` bins, for every column of `positions` [n, k].

    A record counts for one in each of the k histograms, whatever its positions are, so its
    contribution has norm √k. Positions outside the bins are counted in the nearest.

    Examples
    --------
    >>> histograms(np.array([[0], [2], [2]]), 3).value.tolist()
    [[1.0, 0.0, 2.0]]
    """
    inside = np.clip(np.nan_to_num(positions), 0, bins - 1).astype(np.int64)
    counts = [np.bincount(column, minlength=bins) for column in inside.T]
    value = np.asarray(counts, np.float64).reshape(inside.shape[1], bins)
    return Bounded(value, math.sqrt(inside.shape[1]), 1.0, _MADE_HERE)
