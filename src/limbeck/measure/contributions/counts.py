"""Counts: how many records there are of each class, and in each bin of each column."""

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from limbeck.measure.rows import Block
from limbeck.privacy.run import CLASS_COUNTS as CLASS_COUNTS

HISTOGRAMS = "column histograms"


@dataclasses.dataclass(frozen=True)
class ClassCounts:
    """The number of records in each class, [classes].

    **Guarantee.** A record counts for one in one class, so its contribution has norm one, in L2 and
    in L1.
    """

    classes: int

    grid, l2_bound, l1_bound = 1.0, 1.0, 1.0
    exact, block = True, 4096

    def __call__(self, public: None, block: Block) -> NDArray[np.int64]:
        """The counts of a block."""
        labels = np.clip(block.labels[block.mask], 0, self.classes - 1)
        return np.bincount(labels, minlength=self.classes)


@dataclasses.dataclass(frozen=True)
class Histograms:
    """The number of records in each bin of some columns, [columns, bins].

    `thresholds` separate the bins of each column of encoded values: a value is in the bin with the
    number of the thresholds that it reaches. Columns with fewer bins have zeros at the end.

    **Guarantee.** A record counts for one in each of the k columns, whatever it holds, so its
    contribution has the L2 norm √k and the L1 norm k.
    """

    columns: tuple[int, ...]
    thresholds: tuple[tuple[float, ...], ...]

    grid, exact, block = 1.0, True, 4096

    @property
    def l2_bound(self) -> float:
        """√k."""
        return math.sqrt(len(self.columns))

    @property
    def l1_bound(self) -> float:
        """k."""
        return float(len(self.columns))

    def __call__(self, public: None, block: Block) -> NDArray[np.int64]:
        """The counts of a block."""
        values = np.nan_to_num(block.values[block.mask].astype(np.float64))
        bins = max(len(its) for its in self.thresholds) + 1
        counts = [
            np.bincount(np.searchsorted(its, values[:, column], side="right"), minlength=bins)
            for column, its in zip(self.columns, self.thresholds, strict=True)
        ]
        return np.array(counts, np.int64)
