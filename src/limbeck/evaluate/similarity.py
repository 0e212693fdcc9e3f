"""How alike the columns of a table and of real rows are, one by one and two by two.

Every column, the label too, is cut into bins: categories as they are, numbers into `BINS` equal
parts of their declared bounds.

- `marginals`: 1 − the total variation distance of the shares of the bins, mean over the columns.
- `associations`: 1 − |V − V'|, mean over pairs of columns, where V is Cramér's V of the table of
  counts of the pair, corrected for its bias in few rows (Bergsma 2013).

Both are 1 for tables that are alike. Real rows beside other real rows show how near to 1 chance
lets them come. A few distilled points are not a sample, and are not alike.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.evaluate.score import Score
from limbeck.evaluate.task import Rows, Task

BINS = 20


def evaluate(task: Task) -> list[Score]:
    """Of the release, and of real rows, with the test rows."""
    schema = task.bundle.schema
    if schema.is_image:
        raise UserError("'similarity' is for tables; for images use 'frechet'")
    test = binned(schema, task.test_rows)
    found = _scores(binned(schema, task.release_rows), test, schema)
    scores = [
        Score("similarity", name, value, "release", len(task.release_rows.y))
        for name, value in found.items()
    ]
    if task.real_rows is not None:
        found = _scores(binned(schema, task.real_rows), test, schema)
        scores += [
            Score("similarity", name, value, "real", len(task.real_rows.y))
            for name, value in found.items()
        ]
    return scores


def binned(schema: Schema, rows: Rows) -> NDArray[np.int64]:
    """The bin of each value, one column a column of the schema, the label last."""
    columns, start = [], 0
    for column in schema.columns:
        values = rows.x[:, start : start + column.width]
        if column.kind == "categorical":
            columns.append(values.argmax(axis=1))
        else:
            columns.append(np.clip(values[:, 0] * BINS, 0, BINS - 1).astype(np.int64))
        start += column.width
    return np.stack([*columns, rows.y], axis=1)


def _scores(ours: NDArray[np.int64], theirs: NDArray[np.int64], schema: Schema) -> dict[str, float]:
    sizes = [c.width if c.kind == "categorical" else BINS for c in schema.columns]
    sizes = [*sizes, len(schema.classes)]
    columns = range(len(sizes))
    apart = [
        _apart(_shares(ours[:, j], sizes[j]), _shares(theirs[:, j], sizes[j])) for j in columns
    ]
    differences = [
        abs(
            cramers_v(_counts(ours, i, j, sizes[i], sizes[j]))
            - cramers_v(_counts(theirs, i, j, sizes[i], sizes[j]))
        )
        for i, j in itertools.combinations(columns, 2)
    ]
    return {
        "marginals": 1 - float(np.mean(apart)),
        "associations": 1 - float(np.mean(differences)),
    }


def _shares(bins: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.bincount(bins, minlength=size) / len(bins)


def _apart(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    """The total variation distance."""
    return float(np.abs(ours - theirs).sum() / 2)


def _counts(
    bins: NDArray[np.int64], i: int, j: int, size_i: int, size_j: int
) -> NDArray[np.float64]:
    pairs = np.bincount(bins[:, i] * size_j + bins[:, j], minlength=size_i * size_j)
    return pairs.reshape(size_i, size_j).astype(np.float64)


def cramers_v(counts: NDArray[np.float64]) -> float:
    """Between 0, for independent columns, and 1, where one says all about the other.

    Examples
    --------
    >>> round(cramers_v(np.array([[50.0, 0.0], [0.0, 50.0]])), 2)
    1.0
    >>> cramers_v(np.array([[25.0, 25.0], [25.0, 25.0]]))
    0.0
    """
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    n, (rows, columns) = counts.sum(), counts.shape
    if min(rows, columns) < 2 or n < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi = float(((counts - expected) ** 2 / expected).sum() / n)
    bias = (rows - 1) * (columns - 1) / (n - 1)
    rows, columns = rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)
    least = min(rows, columns) - 1
    return float(np.sqrt(min(max(phi - bias, 0) / least, 1))) if least > 0 else 0.0
