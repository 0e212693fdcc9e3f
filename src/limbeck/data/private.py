"""The wall around private rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck.data.encode import Batch, Encoded, encode_images, encode_labels, encode_table
from limbeck.data.schema import Schema
from limbeck.data.source import BATCH, Source, Split, open_source
from limbeck.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


class PrivateData:
    """Private records behind a public schema.

    It cannot be turned into an array, measured with `len`, looped over, copied or pickled, and it
    prints as its name and its public shape, so that no row ends up in a log by accident. The only
    way to the rows is `reveal`, which is reserved for `limbeck.measure`.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Source, *, accept_drafted_schema: bool = False) -> None:
        if source.schema.drafted and not accept_drafted_schema:
            raise UserError(
                "the schema was drafted from the private rows, so a release would reveal its "
                "bounds and categories; review it and delete the line drafted_from_private_data, "
                "or accept that with --accept-drafted-schema (accept_drafted_schema=True)"
            )
        self._source = source

    @classmethod
    def from_arrays(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        schema: Schema,
        *,
        accept_drafted_schema: bool = False,
    ) -> "PrivateData":
        """Wrap arrays: images of whole numbers 0..255, or encoded records `[n, width]` in [0, 1].

        `y` holds values of the schema's classes, one a record.
        """
        x, y = np.asarray(x), np.asarray(y)
        if y.ndim != 1 or len(x) != len(y):
            raise UserError("y must be one label for each record of x, of shape [n]")
        raw = schema.is_image and x.dtype.kind in "iu"
        encoded = encode_images(schema, x) if raw else _encoded(schema, x)
        labels = encode_labels(schema, y)

        def read(size: int) -> Iterator[Batch]:
            for start in range(0, len(labels), size):
                yield encoded[start : start + size], labels[start : start + size]

        return cls(Source("arrays", schema, read), accept_drafted_schema=accept_drafted_schema)

    @classmethod
    def from_frame(
        cls, frame: "pd.DataFrame", schema: Schema, *, accept_drafted_schema: bool = False
    ) -> "PrivateData":
        """Wrap a data frame that has the schema's columns and label, in original units."""
        if schema.is_image:
            raise UserError("the schema describes images: use from_arrays")
        frame = frame.copy()

        def read(size: int) -> Iterator[Batch]:
            for start in range(0, len(frame), size):
                yield encode_table(schema, frame.iloc[start : start + size], start + 1)

        return cls(Source("frame", schema, read), accept_drafted_schema=accept_drafted_schema)

    @property
    def schema(self) -> Schema:
        """The public description of the records."""
        return self._source.schema

    @property
    def name(self) -> str:
        """The public name of the source."""
        return self._source.name

    def reveal(self, size: int = BATCH) -> Iterator[Batch]:
        """Encoded batches `(x, y)` of private records. Only `limbeck.measure` may call this.

        What is computed from them must be noised, and charged to a ledger, before it leaves that
        package. A test looks for other callers.
        """
        return self._source.batches(size)

    def __repr__(self) -> str:
        schema = self.schema
        record = (
            "×".join(map(str, schema.image_shape)) + " pixels"
            if schema.is_image
            else f"{len(schema.columns)} columns"
        )
        return f"PrivateData({self.name!r}, {record}, {len(schema.classes)} classes)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data is neither copied nor pickled; open its source again")


def open_private(
    spec: str | Path,
    schema: Schema | str | Path | None = None,
    split: Split | None = "train",
    *,
    accept_drafted_schema: bool = False,
) -> PrivateData:
    """Open a source, as `open_source` does, behind the wall.

    A schema that was drafted from the private rows is refused unless that is accepted.
    """
    source = open_source(spec, schema, split)
    return PrivateData(source, accept_drafted_schema=accept_drafted_schema)


def _encoded(schema: Schema, x: NDArray[Any]) -> Encoded:
    if x.ndim != 2 or x.shape[1] != schema.width or x.dtype.kind != "f":
        raise UserError(
            f"x must be encoded records, floating-point of shape [n, {schema.width}]"
            + (", or images of whole numbers 0..255" if schema.is_image else "")
        )
    if not np.all((x >= 0) & (x <= 1)):
        raise UserError("encoded records must lie in [0, 1]; encode them by the schema")
    return x.astype(np.float32)
