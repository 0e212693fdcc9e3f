"""What contributions have in common that exist as sums in closed form only."""

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.clipping import Clip

# The bound of a record in units of the grid. Rounding a sum of d entries to the grid moves it by at
# most √d/2 units, which is within the margin of `Clip.record_norm` up to d = 10¹¹.
UNITS = 2.0**30


@dataclasses.dataclass(frozen=True)
class ClosedForm:
    """A float64 sum of contributions clipped by `clip`, rounded to a grid once it is complete."""

    clip: Clip

    l1_bound = None
    exact, block = False, 512

    @property
    def grid(self) -> float:
        """A small part of the bound; one, without a bound."""
        return self.clip.record_norm / UNITS if math.isfinite(self.clip.record_norm) else 1.0

    @property
    def l2_bound(self) -> float:
        """The norm of a clipped contribution, and the margin for rounding."""
        return self.clip.record_norm / self.grid


def centred_one_hot(labels: NDArray[np.integer], classes: int) -> NDArray[np.float64]:
    """One-hot rows minus 1/classes, which regression treats as zero knowledge.

    Examples
    --------
    >>> centred_one_hot(np.array([1]), 2).tolist()
    [[-0.5, 0.5]]
    """
    return np.eye(classes)[labels] - 1 / classes
