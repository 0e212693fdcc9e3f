"""Records to numbers in [0, 1] and back, by the public schema alone.

Each record is encoded by itself: no mean, no range, no category list is ever taken from the rows.

    numeric, integer    (value - minimum) / (maximum - minimum), clamped
    ordinal, boolean    position / (number of values - 1)
    categorical         one-hot
    image               pixel / 255, flattened in C order
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.data.values import Value
from limbeck.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from limbeck.data.cells import Cells

Encoded = NDArray[np.float32]
Labels = NDArray[np.int32]
Batch = tuple[Encoded, Labels]

_COMPLAINTS = {
    "numeric": "the value is not a number; correct the file, or list its mark in `missing_values`",
    "integer": "the value is not a number; correct the file, or list its mark in `missing_values`",
    "boolean": "the value is none of true/false, yes/no, 1/0; correct the file or the kind",
    "ordinal": "the value is not declared in the schema; declare `other`, or, if it is publicly "
    "known that such values occur, add it",
    "categorical": "the value is not declared in the schema; declare `other`, or, if it is "
    "publicly known that such values occur, add it (a label has no `other`: correct the file)",
}


def encode_table(schema: Schema, frame: "pd.DataFrame", first_row: int = 1) -> Batch:
    """Coordinates `[n, width]` in [0, 1] and class numbers `[n]` of the rows of a table.

    Columns are found by name and others are ignored. `first_row` is the position in the file of
    the frame's first row, for error messages.
    """
    names = [str(name) for name in frame.columns]
    require_columns("the table", [*(column.name for column in schema.columns), schema.label], names)
    labels = encode_labels(schema, frame[schema.label], first_row)
    return encode_rows(schema, frame, first_row), labels


def encode_rows(schema: Schema, rows: "pd.DataFrame | ArrayLike", first_row: int = 1) -> Encoded:
    """Coordinates `[n, width]` in [0, 1] of records without a label: a table, or images."""
    import pandas as pd

    if schema.is_image:
        return encode_images(schema, np.asarray(rows))
    if not isinstance(rows, pd.DataFrame):
        raise UserError("the schema describes a table: give a pandas DataFrame with its columns")
    wanted = [column.name for column in schema.columns]
    require_columns("the table", wanted, [str(name) for name in rows.columns])
    x = np.zeros((len(rows), schema.width), dtype=np.float32)
    for column, span in _spans(schema):
        cells = _fit_cells(column, rows[column.name], schema.missing_values, first_row)
        _write(column, cells.values, x[:, span])
    return x


def decode_table(schema: Schema, x: ArrayLike) -> "pd.DataFrame":
    """Rows in the schema's own units and category names; values outside the domain are clamped."""
    import pandas as pd

    x = _matrix(schema, x)
    return pd.DataFrame({column.name: _read(column, x[:, span]) for column, span in _spans(schema)})


def encode_labels(
    schema: Schema, labels: "pd.Series[Any] | ArrayLike", first_row: int = 1
) -> Labels:
    """Class numbers of label values, which may be numbers, booleans or text."""
    import pandas as pd

    series = labels if isinstance(labels, pd.Series) else pd.Series(np.asarray(labels))
    cells = _fit_cells(label_column(schema), series, schema.missing_values, first_row)
    return cells.values.astype(np.int32)


def decode_labels(schema: Schema, y: ArrayLike) -> NDArray[Any]:
    """The declared classes, in their own type, from class numbers."""
    return _pick(schema.classes, np.asarray(y))


def encode_images(schema: Schema, images: ArrayLike) -> Encoded:
    """Flattened pixels in [0, 1] from whole numbers 0..255, `[n, h, w]` or `[n, h, w, c]`."""
    images = np.asarray(images)
    check_images(schema, images.shape, images.dtype)
    if images.dtype != np.uint8 and images.size and not 0 <= images.min() <= images.max() <= 255:
        raise UserError("x holds pixels outside 0..255; rescale the images to that range")
    return images.reshape(len(images), schema.width).astype(np.float32) / np.float32(255)


def decode_images(schema: Schema, x: ArrayLike) -> NDArray[np.float32]:
    """Images on the pixel scale 0..255, not clipped, `[n, h, w]` or `[n, h, w, c]`."""
    height, width, channels = schema.image_shape
    tail = (height, width) if channels == 1 else (height, width, channels)
    return _matrix(schema, x, np.float32).reshape(-1, *tail) * np.float32(255)


def nearest_records(schema: Schema, x: ArrayLike) -> Encoded:
    """The record nearest to each row of coordinates: what the schema admits, encoded.

    Within the bounds; whole pixels, whole numbers, one category. Decoding it is decoding `x`.
    """
    x = _matrix(schema, x, np.float32)
    near = np.clip(x, 0, 1)
    if schema.is_image:
        return np.rint(near * np.float32(255)) / np.float32(255)
    for column, span in _spans(schema):
        if column.kind == "categorical":
            near[:, span] = np.eye(column.width)[x[:, span].argmax(axis=1)]
        elif column.kind != "numeric":
            low, length = _scale(column)
            whole = np.rint(near[:, span].astype(np.float64) * length + low)
            near[:, span] = (whole - low) / length
    return near


def check_images(schema: Schema, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that cannot hold images of the declared shape."""
    height, width, channels = schema.image_shape
    accepted = [(height, width, channels)] + ([(height, width)] if channels == 1 else [])
    if shape[1:] not in accepted:
        raise UserError(
            f"x has records of shape {_shape(shape[1:])}, but the schema's [image] declares "
            f"{_shape(accepted[-1])}; correct one of them"
        )
    if dtype.kind not in "iu":
        raise UserError(
            f"x has the type {dtype}, but images are whole numbers 0..255; "
            "save them as x.astype('uint8')"
        )


def label_column(schema: Schema) -> Column:
    """The label as a column whose domain is the classes; nothing is mapped, all else refused."""
    return Column(schema.label, "categorical", values=schema.classes)


def require_columns(where: str, wanted: list[str], present: list[str]) -> None:
    """Refuse a table that lacks a wanted column, or has it twice.

    The names that are present are not shown: in a file without a header they are the cells of a
    private row. Only another spelling of the wanted name is.
    """
    counts = Counter(present)
    for name in wanted:
        if counts[name] > 1:
            raise UserError(f"{where}: column {name!r} occurs twice; rename one of them")
        if not counts[name]:
            alike = [other for other in present if _bare(other) == _bare(name)]
            hint = (
                f"did you mean {alike[0]!r}?" if alike else "does it have a header, and this one?"
            )
            raise UserError(f"{where}: no column {name!r}; {hint}")


def _bare(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _fit_cells(
    column: Column, series: "pd.Series[Any]", marks: tuple[str, ...], first_row: int
) -> "Cells":
    """The cells of a column, or an error that says where the first unfit one is, not what."""
    from limbeck.data.cells import read_cells

    cells = read_cells(column, series, marks)
    if cells.unfit.any():
        row = first_row + int(cells.unfit.argmax())
        raise UserError(f"column {column.name!r}, data row {row}: {_COMPLAINTS[column.kind]}")
    if cells.missing.any():
        row = first_row + int(cells.missing.argmax())
        raise UserError(
            f"column {column.name!r}, data row {row}: the value is missing; fill it in, or declare "
            "`missing` for the column in the schema (a label cannot be missing)"
        )
    return cells


def _spans(schema: Schema) -> Iterator[tuple[Column, slice]]:
    """Each column with its place among the coordinates."""
    start = 0
    for column in schema.columns:
        yield column, slice(start, start + column.width)
        start += column.width


def _write(column: Column, values: NDArray[np.float64], x: Encoded) -> None:
    """Fill the column's coordinates, zero before, from numbers or positions."""
    if column.kind == "categorical":
        x[np.arange(len(x)), values.astype(np.int64)] = 1
    else:
        low, span = _scale(column)
        x[:, 0] = (values - low) / span


def _read(column: Column, x: NDArray[np.float64]) -> NDArray[Any]:
    """The inverse of `_write`, for any real numbers."""
    if column.kind == "categorical":
        return _pick(column.domain, np.argmax(x, axis=1))
    low, span = _scale(column)
    values = np.clip(np.clip(x[:, 0], 0, 1) * span + low, low, low + span)
    if column.kind == "numeric":
        return values
    whole = np.rint(values).astype(np.int64)
    return whole if column.kind == "integer" else _pick(column.domain, whole)


def _scale(column: Column) -> tuple[float, float]:
    """Where the column's scale starts, and its length."""
    if column.is_number:
        return float(column.minimum), float(column.maximum) - float(column.minimum)
    return 0.0, float(len(column.domain) - 1)


def _matrix(schema: Schema, x: ArrayLike, dtype: type[Any] = np.float64) -> NDArray[Any]:
    matrix = np.asarray(x, dtype=dtype)
    if matrix.ndim != 2 or matrix.shape[1] != schema.width:
        raise UserError(f"encoded records must have the shape [n, {schema.width}]")
    return matrix


def _pick(values: tuple[Value, ...], positions: NDArray[Any]) -> NDArray[Any]:
    """The values at the positions, in their common type, or as objects where they have none."""
    one_type = len({type(value) for value in values}) == 1 and not isinstance(values[0], str)
    picked: NDArray[Any] = np.array(values, dtype=None if one_type else object)[positions]
    return picked


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a single number"
