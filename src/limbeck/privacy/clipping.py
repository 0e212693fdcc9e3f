"""What one record can do to a sum, at most.

Noise is drawn for a `Bounded` only, and a `Bounded` is made only here, by whoever multiplied each
record's contribution with the factors that a `Clip` gave for its norm.
"""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

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
    and by at most `record_l1_norm` in L1 where that is known; replacing one by at most twice that.
    Each record took part with `sampling_probability`, independently of the others.
    """

    def __init__(
        self,
        value: np.ndarray,
        record_norm: float,
        sampling_probability: float,
        made: object,
        record_l1_norm: float | None = None,
    ) -> None:
        if made is not _MADE_HERE:
            raise TypeError("a Bounded is made by limbeck.privacy.clipping only")
        self.value = value
        self.record_norm = record_norm
        self.record_l1_norm = record_l1_norm
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
    columns = inside.shape[1]
    return Bounded(value, math.sqrt(columns), 1.0, _MADE_HERE, record_l1_norm=columns)


def count_votes(votes: NDArray[np.uint8], bins: int) -> Bounded:
    """How many voters chose each of `bins` bins, [q, bins], for every query; `votes` is [n, q].

    **Guarantee.** A record belongs to one voter, and a voter casts exactly one vote a query,
    whatever it is. If that voter changes its mind in all q queries, one count goes down by one and
    another up in each of them: the counts move by at most √(2q). The number of voters is public.

    Examples
    --------
    >>> count_votes(np.array([[0], [2], [2]], np.uint8), 3).value.tolist()
    [[1.0, 0.0, 2.0]]
    """
    return Bounded(_tally(votes, bins), math.sqrt(2 * votes.shape[1]), 1.0, _MADE_HERE)


def most_votes(votes: NDArray[np.uint8], bins: int) -> Bounded:
    """The largest count of each query, [q].

    **Guarantee.** When one voter moves from one bin to another, no count changes by more than one,
    nor does the largest: they move by at most √q.
    """
    largest = _tally(votes, bins).max(axis=1)
    return Bounded(largest, math.sqrt(votes.shape[1]), 1.0, _MADE_HERE)


def _tally(votes: NDArray[np.uint8], bins: int) -> NDArray[np.float64]:
    """Counted bin by bin; a vote beyond the last bin is one for the last."""
    counts = np.zeros((bins, votes.shape[1]), np.int64)
    for start in range(0, len(votes), 255):  # so many fit into a byte, and bytes are fast to add
        some = np.minimum(votes[start : start + 255], np.uint8(bins - 1))
        for place in range(bins):
            counts[place] += np.add.reduce((some == place).view(np.uint8), axis=0, dtype=np.uint8)
    return counts.T.astype(np.float64)
