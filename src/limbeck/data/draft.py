"""A first schema, read from the data, for its owner to review.

This looks at the private rows, so the result is marked `drafted_from_private_data` and a release
made with it is refused until the owner has reviewed it and removed the mark.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from limbeck.data.arrays import raw_batches
from limbeck.data.cells import parse_numbers
from limbeck.data.check import check
from limbeck.data.column import LARGEST_INTEGER, Column
from limbeck.data.encode import require_columns
from limbeck.data.images import class_folders, image_files, read_image
from limbeck.data.schema import ImageShape, Schema
from limbeck.data.source import BATCH, existing_path
from limbeck.data.tables import column_names, frames
from limbeck.data.values import Value, number, text
from limbeck.errors import UserError

__all__ = ["check", "draft"]

MOST_CATEGORIES = 200
MARKS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL")
LABEL_NAMES = ("label", "target", "class", "y")
UNKNOWN = "Unknown"


def draft(spec: str | Path, label: str | None = None) -> Schema:
    """Guess a schema from a CSV, Parquet or `.npz` file or a folder of class folders of images.

    `label` names the label column of a table; without it, a column called label, target, class or
    y is taken, or else the last one.
    """
    path = existing_path(spec)
    if path.is_dir():
        return _from_folder(path)
    if path.name.endswith(".npz"):
        return _from_arrays(path)
    names = column_names(path)
    label = _default_label(names) if label is None else label
    require_columns(path.name, [label], names)
    return _from_frames(path, (frame for _, frame in frames(path, None, BATCH)), label)


@dataclass
class _Seen:
    """What was seen of one column so far."""

    texts: set[str] = field(default_factory=set)  # at most MOST_CATEGORIES + 1 of them
    marks: set[str] = field(default_factory=set)
    minimum: float = math.inf
    maximum: float = -math.inf
    only_numbers: bool = True
    only_whole: bool = True
    gaps: bool = False

    def add(self, cells: "pd.Series[Any]") -> None:
        values, missing = parse_numbers(cells, MARKS)
        self.gaps |= bool(missing.any())
        self.marks |= set(cells[missing].dropna().map(text)) - {""}
        self.only_numbers &= not np.isnan(values[~missing]).any()
        if len(self.texts) <= MOST_CATEGORIES:
            self.texts |= set(cells[~missing].map(text).unique()[: MOST_CATEGORIES + 1])
        finite = values[np.isfinite(values)]
        if finite.size:
            self.minimum = min(self.minimum, float(finite.min()))
            self.maximum = max(self.maximum, float(finite.max()))
            whole = (finite % 1 == 0) & (np.abs(finite) < LARGEST_INTEGER / 10)
            self.only_whole &= bool(whole.all())


def _from_frames(path: Path, pieces: Iterator[pd.DataFrame], label: str) -> Schema:
    seen: dict[str, _Seen] = {}
    for frame in pieces:
        for name in frame.columns:
            seen.setdefault(name, _Seen()).add(frame[name])
    if not seen:
        raise UserError(f"{path.name}: there are no rows to draft a schema from")
    marks = set[str]().union(*(column.marks for column in seen.values()))
    classes = _classes(path, seen.pop(label), label)
    return Schema(
        classes=classes,
        columns=tuple(_column(path, name, column) for name, column in seen.items()),
        label=label,
        missing_values=tuple(sorted(marks)),
        drafted=True,
    )


def _column(path: Path, name: str, seen: _Seen) -> Column:
    """The kind and the domain that fit what was seen."""
    if not seen.texts:
        raise UserError(f"{path.name}: column {name!r} has no values at all; remove it")
    if {word.lower() for word in seen.texts} <= {"true", "false", "yes", "no", "0", "1"}:
        return Column(name, "boolean", missing=False if seen.gaps else None)
    if seen.only_numbers and math.isfinite(seen.maximum - seen.minimum):
        low, high = _outward(seen.minimum, seen.maximum, seen.only_whole)
        middle = round((low + high) / 2) if seen.only_whole else (low + high) / 2
        kind = "integer" if seen.only_whole else "numeric"
        return Column(name, kind, low, high, missing=middle if seen.gaps else None)
    if len(seen.texts) > MOST_CATEGORIES:
        raise UserError(
            f"{path.name}: column {name!r} holds more than {MOST_CATEGORIES} distinct texts; "
            "remove it from the file (names and notes cannot be released), or group its values"
        )
    fallback = UNKNOWN if seen.gaps or len(seen.texts) == 1 else None
    missing = UNKNOWN if seen.gaps else None
    return Column(
        name, "categorical", values=tuple(sorted(seen.texts)), other=fallback, missing=missing
    )


def _classes(path: Path, seen: _Seen, label: str) -> tuple[Value, ...]:
    if seen.gaps:
        raise UserError(f"{path.name}: the label {label!r} has missing values; remove those rows")
    if len(seen.texts) > MOST_CATEGORIES or (seen.only_numbers and not seen.only_whole):
        raise UserError(f"{path.name}: the label {label!r} is not a set of classes; name another")
    return _distinct_classes(path, seen.texts)


def _distinct_classes(path: Path, texts: set[str]) -> tuple[Value, ...]:
    """The classes as booleans, whole numbers or texts, whichever they look like."""
    if {word.lower() for word in texts} == {"true", "false"}:
        return False, True
    if all(_is_whole(word) for word in texts):
        return _at_least_two(path, tuple(sorted({int(float(word)) for word in texts})))
    return _at_least_two(path, tuple(sorted(texts)))


def _at_least_two(path: Path, classes: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(classes) < 2:
        raise UserError(f"{path.name}: has only one class; at least two are needed")
    return classes


def _is_whole(word: str) -> bool:
    """Whether the text is a whole number; `01` is not, because a code would lose its zero."""
    value = number(word)
    return value is not None and word.removesuffix(".0") == str(int(value))


def _outward(low: float, high: float, whole: bool) -> tuple[float, float]:
    """Bounds rounded outward to a round unit of the size of the range."""
    exponent = math.floor(math.log10(high - low)) if high > low else 0
    exponent = max(exponent, 0) if whole else exponent
    unit = 10.0**exponent
    low, high = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    high = high if high > low else low + unit
    if whole:
        return int(low), int(high)
    return round(low, max(-exponent, 0)), round(high, max(-exponent, 0))


def _default_label(names: list[str]) -> str:
    usual = [name for name in names if name.strip().lower() in LABEL_NAMES]
    return usual[0] if usual else names[-1]


def _from_arrays(path: Path) -> Schema:
    pieces = raw_batches(path, "train", BATCH)
    x, y = next(pieces, (None, None))
    if x is None or y is None:
        raise UserError(f"{path.name}: there are no rows to draft a schema from")
    whole = chain([(x, y)], pieces)
    if x.ndim == 2:
        names = [f"x{i}" for i in range(1, x.shape[1] + 1)]
        tables = (pd.DataFrame(x, columns=names).assign(label=y) for x, y in whole)
        return _from_frames(path, tables, "label")
    if x.ndim not in (3, 4):
        raise UserError(f"{path.name}: x must be images [n, h, w] or [n, h, w, c], or rows [n, d]")
    seen = _Seen()
    for _, labels in whole:
        seen.add(pd.Series(labels))
    image = ImageShape(*x.shape[1:])
    return Schema(classes=_classes(path, seen, "y"), image=image, drafted=True)


def _from_folder(folder: Path) -> Schema:
    folders = class_folders(folder)
    first = next((file for inner in folders for file in image_files(inner)), None)
    if first is None:
        raise UserError(f"{folder.name}: the class folders hold no images")
    return Schema(
        classes=_distinct_classes(folder, {inner.name for inner in folders}),
        image=ImageShape(*read_image(folder, first).shape),
        drafted=True,
    )
