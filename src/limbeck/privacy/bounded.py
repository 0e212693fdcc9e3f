"""What one record can do to a sum, at most.

A `Contribution` states the bound; a `Bounded` is the sum of such contributions, and the only thing
that noise can be added to.
"""

import math
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.budget import Adjacency

Public = TypeVar("Public", contravariant=True)
Block = TypeVar("Block", contravariant=True)

# Sums stay below 2⁶² in absolute value, so that noise can be added without overflow.
LARGEST = 2**62


class Contribution(Protocol[Public, Block]):
    """What each record adds to a sum: a pure function of that record and of public numbers.

    Called with a block of records it returns the sum of theirs, which leaves out padding, as
    whole numbers of units of `grid` (`exact`), or as real numbers that are rounded to such units
    once all blocks are added up.

    Attributes
    ----------
    grid : the unit of the whole numbers.
    l2_bound : the largest L2 norm of one record's contribution, in units of the grid; including, if
        the contribution is not `exact`, all rounding.
    l1_bound : the same in L1, where it is known; Laplace noise needs it.
    exact : whether the contributions are integers, so that sums are the same bits in any order.
    block : how many records are passed in one call.
    """

    @property
    def grid(self) -> float: ...  # noqa: D102
    @property
    def l2_bound(self) -> float: ...  # noqa: D102
    @property
    def l1_bound(self) -> float | None: ...  # noqa: D102
    @property
    def exact(self) -> bool: ...  # noqa: D102
    @property
    def block(self) -> int: ...  # noqa: D102
    def __call__(self, public: Public, block: Block) -> NDArray[Any]: ...  # noqa: D102


class Bounded:
    """A sum over records of contributions, in whole units of their grid.

    **Guarantee.** Adding or removing one record moves `value` by at most `l2_bound` in L2, and by
    at most `l1_bound` in L1 where that is known; replacing one by at most twice that. The guarantee
    is the contribution's; `Bounded` only carries it to the noise.
    """

    def __init__(self, total: NDArray[Any], contribution: Contribution[Any, Any]) -> None:
        value = np.asarray(total)
        if value.dtype != np.int64:
            value = np.nan_to_num(np.rint(value), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
            value = np.clip(value, -LARGEST, LARGEST).astype(np.int64)
        self.value: NDArray[np.int64] = value
        self.grid, self.l2_bound = contribution.grid, contribution.l2_bound
        self.l1_bound = contribution.l1_bound
        if not (math.isfinite(self.l2_bound) and self.l2_bound > 0 and self.grid > 0):
            raise ValueError("a contribution without a finite, positive bound cannot be noised")

    def l2_sensitivity(self, adjacency: Adjacency) -> float:
        """How far `value` can be from that of a neighbour."""
        return adjacency.records_changed * self.l2_bound
