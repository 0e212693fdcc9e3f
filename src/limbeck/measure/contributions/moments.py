"""Second moments of features, for kernel ridge regression without privacy."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from limbeck.measure.contributions.closed_form import centred_one_hot
from limbeck.measure.rows import Block

MOMENTS = "moments of features"


@dataclasses.dataclass(frozen=True)
class FeatureMoments:
    """Σ φ φᵀ, Σ φ yᵀ and the number of records, side by side: [f, f + c + 1].

    Rows hold features of f numbers.

    **Guarantee.** None: a record is not bounded, so no noise can be added. For KIP only.
    """

    classes: int

    grid, l2_bound, l1_bound = 1.0, float("inf"), None
    exact, block = False, 1024

    def __call__(self, public: None, block: Block) -> NDArray[np.float64]:
        """The sum over a block."""
        phi = np.where(block.mask[:, None], block.values, 0).astype(np.float64)
        y = centred_one_hot(block.labels, self.classes)
        count = np.full((phi.shape[1], 1), block.mask.sum())
        return np.concatenate([phi.T @ phi, phi.T @ y, count], axis=1)
