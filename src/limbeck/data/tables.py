"""Reading CSV and Parquet in bounded pieces, only the columns that are needed.

Cells of a CSV file stay text until the schema says what they are, so that the category `01` does
not become the number 1. Ragged rows and wrong encodings are refused rather than patched.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from limbeck.data.encode import Batch, encode_table, require_columns
from limbeck.data.schema import Schema
from limbeck.errors import UserError

_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_BLOCK = 16 * 2**20  # bytes of a CSV file parsed at a time; no row may be longer


def table_batches(path: Path, schema: Schema, size: int) -> Iterator[Batch]:
    """Encoded batches of a CSV or Parquet file."""
    if schema.is_image:
        raise UserError(f"{path.name}: a table, but the schema has [image] instead of columns")
    wanted = [*(column.name for column in schema.columns), schema.label]
    for first_row, frame in frames(path, wanted, size):
        try:
            yield encode_table(schema, frame, first_row)
        except UserError as error:
            raise UserError(f"{path.name}: {error}") from None


def frames(path: Path, wanted: list[str] | None, size: int) -> Iterator[tuple[int, pd.DataFrame]]:
    """Pieces of at most `size` rows, each with the 1-based position of its first row.

    `wanted` are the columns to read, None for all.
    """
    first_row = 1
    with _plain_errors(path):
        read = _parquet if path.name.endswith(".parquet") else _csv
        present = column_names(path)
        wanted = present if wanted is None else wanted
        require_columns(path.name, wanted, present)
        for batch in read(path, wanted, size):
            for start in range(0, batch.num_rows, size):
                frame = batch.slice(start, size).to_pandas(integer_object_nulls=True)
                yield first_row, frame
                first_row += len(frame)


def column_names(path: Path) -> list[str]:
    """The names of the file's columns."""
    with _plain_errors(path):
        if path.stat().st_size == 0:
            raise UserError(f"{path.name}: the file is empty")
        if path.name.endswith(".parquet"):
            return list(pq.read_schema(path).names)
        with pa.input_stream(path, compression="detect") as stream:
            return list(_open_csv(stream).schema.names)


def _parquet(path: Path, wanted: list[str], size: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(batch_size=size, columns=wanted)


def _csv(path: Path, wanted: list[str], size: int) -> Iterator[pa.RecordBatch]:
    as_text = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted
    )
    with pa.input_stream(path, compression="detect") as stream:
        yield from _open_csv(stream, as_text)


def _open_csv(
    stream: pa.NativeFile, convert: pa.csv.ConvertOptions | None = None
) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        stream,
        read_options=pa.csv.ReadOptions(block_size=_BLOCK),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=convert,
    )


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn what the readers raise into one line, without the rows that they like to quote."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise UserError(f"{path.name}: {_reason(path, str(error))}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path.name}: not in UTF-8; save the file with that encoding") from None
    except (OSError, EOFError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or "it is damaged or not what its name says"
        raise UserError(f"{path.name}: cannot be read: {reason}") from None


def _reason(path: Path, message: str) -> str:
    if path.name.endswith(".parquet"):
        return "not a Parquet file, or a damaged one; write it again"
    if "Empty CSV" in message:
        return "the file is empty"
    if "UTF8" in message or "UTF-8" in message:
        return "not in UTF-8; save the file with that encoding"
    if found := _RAGGED.search(message):
        row, expected, got = found.groups()
        where = f"line {row}" if row else "a row"
        return f"{where} has {got} fields where the header has {expected}; correct the file"
    return "not a well-formed CSV file; write it again with a header and commas"
