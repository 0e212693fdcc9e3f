"""Reading the cells of one column: numbers, or positions in the declared domain.

Nothing is raised here, so that `encode` can refuse the first unfit cell and `draft.check` can
count all of them. Every cell is read by itself; no result depends on another row.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from limbeck.data.column import Column
from limbeck.data.values import Lookup, text

_YES_NO = {"no": 0, "yes": 1}
_MISSING, _UNFIT = -1, -2


@dataclass(frozen=True)
class Cells:
    """The cells of a column.

    `values` are numbers (clamped to the bounds) or positions in `column.domain`, with the column's
    policies for missing and undeclared values applied. Where no policy says what to do, the cell
    is marked in `missing` or in `unfit`, and its value is meaningless.
    """

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    unfit: NDArray[np.bool_]


def read_cells(column: Column, cells: "pd.Series[Any]", marks: tuple[str, ...] = ()) -> Cells:
    """Read a column of a file; `marks` are the texts that stand for a missing value."""
    return _numbers(column, cells, marks) if column.is_number else _positions(column, cells, marks)


def _numbers(column: Column, cells: "pd.Series[Any]", marks: tuple[str, ...]) -> Cells:
    values, missing = parse_numbers(cells, marks)
    unfit = np.isnan(values) & ~missing
    if column.missing is not None:
        values = np.where(missing, float(column.missing), values)
        missing = np.zeros_like(missing)
    if column.kind == "integer":
        values = np.rint(values)
    return Cells(np.clip(values, column.minimum, column.maximum), missing, unfit)


def parse_numbers(
    cells: "pd.Series[Any]", marks: tuple[str, ...]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers, NaN where there is none, and where that is because the cell is missing.

    One cell that is missing, or is text, can turn a column of numbers into one of objects. Both
    ways of reading give a cell the same number, and both know the marks: what other records hold
    must not change how this one is read.
    """
    missing = cells.isna().to_numpy(dtype=bool)
    if pd.api.types.is_numeric_dtype(cells.dtype) and not pd.api.types.is_complex_dtype(cells):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        absent = {"", "nan", *marks}
        held = [text(cell) if isinstance(cell, str) else cell for cell in cells.astype(object)]
        spelled = [
            isinstance(cell, str) and (cell in absent or cell.lower() == "nan") for cell in held
        ]
        missing = missing | np.array(spelled, dtype=bool)
        values = np.array([_number(cell) for cell in held], dtype=np.float64)
    marked = np.array([_number(mark) for mark in marks], dtype=np.float64)
    return values, missing | np.isin(values, marked[~np.isnan(marked)])


def _number(cell: object) -> float:
    """The number that a cell holds, by its value and not by the type of its column; else NaN."""
    if isinstance(cell, bool | np.bool_ | int | float | np.integer | np.floating):
        return float(cell)
    written = text(cell)
    try:
        return np.nan if "_" in written else float(written)  # 1_000 is Python's, not a data file's
    except ValueError:
        return np.nan


def _positions(column: Column, cells: "pd.Series[Any]", marks: tuple[str, ...]) -> Cells:
    lookup = Lookup(column.domain)
    fallback = _UNFIT if column.other is None else lookup.find(column.other)
    absent = _MISSING if column.missing is None else lookup.find(column.missing)

    def position(cell: str) -> int | None:
        found = lookup.find(cell)
        if found is None and column.kind == "boolean":
            found = _YES_NO.get(cell.lower())
        if found is not None:
            return found
        return absent if cell in ("", *marks) else fallback

    codes, distinct = _factorize(cells)
    table = np.array([*map(position, distinct), absent], dtype=np.int64)  # code -1 is "missing"
    positions = table[codes]
    return Cells(positions.astype(np.float64), positions == _MISSING, positions == _UNFIT)


def _factorize(cells: "pd.Series[Any]") -> tuple[NDArray[np.int64], list[str]]:
    """Codes and distinct cells, so that each distinct cell is looked up once.

    A column of objects may mix types, and pandas takes `True` and `1` for the same; its cells are
    told apart by their spelling before they are compared.
    """
    if pd.api.types.is_object_dtype(cells.dtype):
        cells = cells.map(_spelled, na_action="ignore")
    codes, distinct = pd.factorize(cells)
    return np.asarray(codes, dtype=np.int64), list(map(_spelled, distinct))


def _spelled(cell: object) -> str:
    """The cell as text; a number is spelled by its value, whatever type its column has.

    One missing cell turns a column of integers into floats. That must not change how the other
    records are read.
    """
    if isinstance(cell, float | np.floating):
        value = float(cell)
        return str(int(value)) if value.is_integer() else str(value)
    return text(cell)
