"""What in a file does not fit a schema: for the owner of the data, and not for release.

Findings go on after the first problem and never quote a value of a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from limbeck.data.arrays import frame_of, raw_batches
from limbeck.data.cells import read_cells
from limbeck.data.column import Column
from limbeck.data.encode import encode_images, label_column
from limbeck.data.images import class_folders, image_files, read_image
from limbeck.data.schema import Schema
from limbeck.data.source import BATCH, existing_path
from limbeck.data.tables import column_names, frames
from limbeck.data.values import Lookup, text
from limbeck.errors import UserError


def check(schema: Schema, spec: str | Path) -> list[str]:
    """Findings, one line each; an empty list means that the file fits the schema."""
    path = existing_path(spec)
    look = _check_folder if path.is_dir() else _check_images if schema.is_image else _check_table
    findings: list[str] = []
    try:
        for finding in look(schema, path):
            findings.append(finding)  # one by one, to keep those before an error
    except UserError as error:  # the file cannot be read any further
        findings.append(str(error))
    return findings


@dataclass
class _Tally:
    """What was found in one column so far."""

    column: Column
    missing: int = 0
    unfit: int = 0
    first_missing: int = 0
    first_unfit: int = 0
    undeclared: set[str] = field(default_factory=set)
    positions: set[float] = field(default_factory=set)

    def add(self, first_row: int, series: "pd.Series[Any]", marks: tuple[str, ...]) -> None:
        cells = read_cells(self.column, series, marks)
        if cells.missing.any() and not self.missing:
            self.first_missing = first_row + int(cells.missing.argmax())
        if cells.unfit.any() and not self.unfit:
            self.first_unfit = first_row + int(cells.unfit.argmax())
        self.missing += int(cells.missing.sum())
        self.unfit += int(cells.unfit.sum())
        if not self.column.is_number:
            self.undeclared |= set(series[cells.unfit].map(text))
            self.positions |= set(cells.values[~cells.unfit & ~cells.missing])

    def findings(self) -> Iterator[str]:
        where = f"column {self.column.name!r}"
        if self.unfit and self.column.is_number:
            yield f"{where}: not a number in {self.unfit} rows, first in row {self.first_unfit}"
        elif self.unfit:
            yield (
                f"{where}: undeclared values, {len(self.undeclared)} distinct ones, "
                f"first in row {self.first_unfit}"
            )
        if self.missing:
            yield (
                f"{where}: missing in {self.missing} rows, first in row {self.first_missing}, "
                "and the schema says nothing of missing values"
            )


def _check_table(schema: Schema, path: Path) -> Iterator[str]:
    columns = [*schema.columns, label_column(schema)]
    present = _present(schema, path)
    for column in columns:
        if column.name not in present:
            yield f"column {column.name!r} is missing"
    tallies = {c.name: _Tally(c) for c in columns if c.name in present}
    rows = 0
    for first_row, frame in _pieces(schema, path, list(tallies)):
        rows += len(frame)
        for name, tally in tallies.items():
            tally.add(first_row, frame[name], schema.missing_values)
    yield from _summary(schema, rows, list(tallies.values()))


def _present(schema: Schema, path: Path) -> list[str]:
    if path.name.endswith(".npz"):
        return [*(column.name for column in schema.columns), schema.label]
    return column_names(path)


def _pieces(schema: Schema, path: Path, names: list[str]) -> Iterator[tuple[int, pd.DataFrame]]:
    if not path.name.endswith(".npz"):
        yield from frames(path, names, BATCH)
        return
    first_row = 1
    for x, y in raw_batches(path, "train", BATCH, schema):
        yield first_row, frame_of(schema, x, y)
        first_row += len(y)


def _check_images(schema: Schema, path: Path) -> Iterator[str]:
    tally = _Tally(label_column(schema))
    first_row = 1
    for x, y in raw_batches(path, "train", BATCH, schema):
        try:
            encode_images(schema, x)
        except UserError as error:
            yield f"rows from {first_row} on: {error}"
        tally.add(first_row, pd.Series(y), schema.missing_values)
        first_row += len(y)
    yield from _summary(schema, first_row - 1, [tally])


def _check_folder(schema: Schema, folder: Path) -> Iterator[str]:
    lookup = Lookup(schema.classes)
    shape = schema.image_shape
    tally = _Tally(label_column(schema))
    rows = 0
    for inner in class_folders(folder):
        found = lookup.find(inner.name)
        if found is None:
            yield f"the folder {inner.name!r} is not a class of the schema"
            continue
        for file in image_files(inner):
            rows += 1
            tally.positions.add(found)
            try:
                read_image(folder, file, shape)
            except UserError as error:
                yield str(error)
    yield from _summary(schema, rows, [tally])


def _summary(schema: Schema, rows: int, tallies: list[_Tally]) -> Iterator[str]:
    """The findings that need all rows."""
    if not rows:
        yield "there are no rows"
        return
    for tally in tallies:
        yield from tally.findings()
        if tally.column.name == schema.label and len(tally.positions) == 1:
            yield f"label {schema.label!r}: only one of the declared classes is present"
    if schema.public_rows not in (None, rows):
        yield f"rows declares {schema.public_rows}, but the file has another number of rows"
