"""The tables as DP-NTK prepares them, and scores as it counts them.

Before anything is private, most rows of the commonest class are thrown away, and the rest is split
into training and test rows; of covtype there are only the first 20 000 rows. An owner of private
data could not do that for free: which class is common, and how much of it may go, is read from the
labels, and the test rows have a balance that nobody will meet. It is theirs, not ours, and is here
to put a number beside theirs.

They score choices instead of scores: the area under the ROC curve of a classifier that says yes or
no is its balanced accuracy, and the one under the precision-recall curve has a single corner.
"""

from typing import NamedTuple

import numpy as np

from limbeck.data.source import open_source
from limbeck.evaluate.task import Rows, read

METRICS = {"roc": "balanced_accuracy", "prc": "average_precision_of_choices", "f1": "f1_weighted"}
# The twelve classifiers are trained on at most so many rows; some would take hours on more.
MOST_ROWS = 20_000


class Preparation(NamedTuple):
    """What is kept of the commonest class, which part is for training, and how many rows count."""

    commonest: int | str
    kept: float
    training: float
    rows: int | None = None


PREPARED = {
    "adult": Preparation("<=50K", 0.4, 0.9),
    "cervical": Preparation(0, 0.3, 0.8),
    "credit": Preparation(0, 0.002, 0.8),
    "covtype": Preparation(2, 0.03, 0.7, rows=20_000),
    "intrusion": Preparation("dos", 0.03, 0.7),
}


def prepared(name: str, seed: int) -> tuple[Rows, Rows]:
    """Training and test rows, both without most of the commonest class."""
    commonest, kept, training, rows = PREPARED[name]
    source = open_source(name)
    x, y = _first(name, rows)
    rng = np.random.default_rng(seed)
    many = rng.permutation(np.flatnonzero(y == source.schema.classes.index(commonest)))
    gone = many[int(kept * len(many)) :]
    left = rng.permutation(np.setdiff1d(np.arange(len(y)), gone))
    first = int(training * len(left))
    return Rows(x[left[:first]], y[left[:first]]), Rows(x[left[first:]], y[left[first:]])


def _first(name: str, rows: int | None) -> Rows:
    """The first rows of the file, or all; every fifth of them is in the test split."""
    parts = [read(open_source(name, split=split)) for split in ("train", "test")]
    if rows is not None:
        ends = rows - rows // 5, rows // 5
        parts = [Rows(x[:end], y[:end]) for (x, y), end in zip(parts, ends, strict=True)]
    return Rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
