"""Points of a table: its first rows, and a histogram of each column."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.release.bundle import Bundle

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 20
MOST_COLUMNS = 40
MOST_BARS = 12
BINS = 10


@dataclass(frozen=True)
class Bar:
    """A value, or a range of values, and how many points have it."""

    label: str
    count: int


@dataclass(frozen=True)
class Histogram:
    """A column, what the schema says of it, and its bars; numbers have `bounds`."""

    name: str
    domain: str
    bars: list[Bar]
    bounds: tuple[str, str] | None = None

    @property
    def most(self) -> int:
        """The height of the picture; one where there is nothing to show."""
        return max([1, *(bar.count for bar in self.bars)])

    @property
    def alt(self) -> str:
        """The picture in words: every range that has points."""
        held = "; ".join(f"{bar.label}: {bar.count}" for bar in self.bars if bar.count)
        return f"Histogram of {self.name}. {held or 'Nothing'}."


@dataclass(frozen=True)
class Cells:
    """One column of the first rows, as text."""

    name: str
    is_number: bool
    texts: list[str]


def cells(bundle: Bundle) -> list[Cells]:
    """The first rows in the schema's units and names, with the label and any weights of it."""
    frame = bundle.to_frame()
    label = len(bundle.schema.columns)  # the place of the label; its weights come after it
    shown = [place for place in range(frame.shape[1]) if place < MOST_COLUMNS or place >= label]
    found = []
    for place in shown[: 2 * MOST_COLUMNS]:
        column = frame.iloc[:MOST_ROWS, place]
        texts = [f"{cell:.3f}" if place > label else _text(cell) for cell in column.tolist()]
        found.append(Cells(str(frame.columns[place]), column.dtype.kind in "if", texts))
    return found


def histograms(bundle: Bundle) -> list[Histogram]:
    """The label, and the first columns, across the domains that the schema declares."""
    schema, frame = bundle.schema, bundle.to_frame()
    label = _of_values(frame[schema.label], schema.classes)
    found = [Histogram(schema.label, f"the label, {len(schema.classes)} classes", label)]
    for column in schema.columns[:MOST_COLUMNS]:
        cells = frame[column.name]
        bars = _of_numbers(cells, column) if column.is_number else _of_values(cells, column.domain)
        bounds = (_text(column.minimum), _text(column.maximum)) if column.is_number else None
        found.append(Histogram(column.name, domain(column), bars, bounds))
    return found


def domain(column: Column) -> str:
    """What the schema says of a column."""
    values = len(column.domain)
    return {
        "numeric": f"number, {_text(column.minimum)} to {_text(column.maximum)}",
        "integer": f"whole number, {_text(column.minimum)} to {_text(column.maximum)}",
        "ordinal": f"{values} ordered values",
        "categorical": f"{values} categories",
        "boolean": "true or false",
    }[column.kind]


def hidden(schema: Schema) -> int:
    """How many columns are not shown."""
    return max(0, len(schema.columns) - MOST_COLUMNS)


def _of_numbers(cells: "pd.Series[Any]", column: Column) -> list[Bar]:
    """Equal bins across the bounds; a bar for each value where there are few whole numbers."""
    low, high = float(column.minimum), float(column.maximum)
    values = cells.to_numpy(dtype=np.float64)
    if column.kind == "integer" and high - low < MOST_BARS:
        whole = range(int(low), int(high) + 1)
        return [Bar(str(value), int((values == value).sum())) for value in whole]
    edges = np.linspace(low, high, BINS + 1)
    counts, _ = np.histogram(values, edges)
    labels = [f"{_text(a)} to {_text(b)}" for a, b in itertools.pairwise(edges)]
    return [Bar(label, int(count)) for label, count in zip(labels, counts, strict=True)]


def _of_values(cells: "pd.Series[Any]", domain: Sequence[object]) -> list[Bar]:
    """A bar for each value in the order of the schema; rare ones together where they are many."""
    held = Counter(cells.tolist())
    bars = [Bar(str(value), held[value]) for value in domain]
    if len(bars) <= MOST_BARS:
        return bars
    often = sorted(range(len(bars)), key=lambda place: -bars[place].count)[: MOST_BARS - 1]
    rare = [bar.count for place, bar in enumerate(bars) if place not in often]
    return [*(bars[place] for place in sorted(often)), Bar(f"{len(rare)} others", sum(rare))]


def _text(cell: object) -> str:
    """Six digits of a number, anything else as it is."""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
