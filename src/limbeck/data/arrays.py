"""Reading `.npz` files as streams, without trusting what they say about themselves.

An `.npz` file is a zip of `.npy` files. A small zip can claim, or hold, terabytes; an `.npy` file
can hold pickled objects, which run code when loaded. So sizes are checked before anything is
decompressed, records are decompressed a batch at a time, and object arrays are refused.
"""

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd
from numpy.lib import format as npy
from numpy.typing import NDArray

from limbeck.data.encode import Batch, check_images, encode_images, encode_labels, encode_table
from limbeck.data.schema import Schema
from limbeck.errors import UserError

LARGEST = 16 * 2**30  # bytes, decompressed
UNSUSPICIOUS = 256 * 2**20  # below this, no compression ratio is a danger
LARGEST_RATIO = 1000
_PIECE = 2**20  # bytes asked of the decompressor at a time


@dataclass(frozen=True)
class Header:
    """What an `.npy` member says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool

    @property
    def record_bytes(self) -> int:
        """The size of one record."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def npz_batches(path: Path, schema: Schema, split: str, size: int) -> Iterator[Batch]:
    """Encoded batches of an `.npz` file with `x` and `y`, or `x_train` and so on."""
    first_row = 1
    for x, y in raw_batches(path, split, size, schema):
        try:
            yield encode_arrays(schema, x, y, first_row)
        except UserError as error:
            raise UserError(f"{path.name}: {error}") from None
        first_row += len(y)


def encode_arrays(schema: Schema, x: NDArray[Any], y: NDArray[Any], first_row: int = 1) -> Batch:
    """Encode images, or the rows of a matrix with one column for each column of the schema."""
    if schema.is_image:
        return encode_images(schema, x), encode_labels(schema, y, first_row)
    return encode_table(schema, frame_of(schema, x, y), first_row)


def frame_of(schema: Schema, x: NDArray[Any], y: NDArray[Any]) -> pd.DataFrame:
    """A matrix with one column for each column of the schema, and the labels, as a table."""
    frame = pd.DataFrame(x, columns=[column.name for column in schema.columns])
    return frame.assign(**{schema.label: y})


def raw_batches(
    path: Path, split: str, size: int, schema: Schema | None = None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Pieces of the arrays as they are in the file, checked against the schema before reading."""
    with _plain_errors(path), zipfile.ZipFile(path) as archive:
        x_name, y_name = _members(path, archive.namelist(), split)
        _check_sizes(path, [archive.getinfo(x_name), archive.getinfo(y_name)])
        with archive.open(x_name) as x_stream, archive.open(y_name) as y_stream:
            x_header = _header(path, archive.getinfo(x_name), x_stream)
            y_header = _header(path, archive.getinfo(y_name), y_stream)
            _check_headers(path, x_header, y_header, schema)
            for start in range(0, x_header.shape[0], size):
                count = min(size, x_header.shape[0] - start)
                yield (
                    _read(path, x_stream, x_header, count),
                    _read(path, y_stream, y_header, count),
                )


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a file from a stranger, within the same limits as those of a source."""
    arrays = {}
    with _plain_errors(path), zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        _check_sizes(path, members)
        for member in members:
            with archive.open(member) as stream:
                header = _header(path, member, stream)
                flat = _read(path, stream, Header((), header.dtype, False), math.prod(header.shape))
                stream.read(1)  # reaches the end, where the checksum is compared
            order: Literal["F", "C"] = "F" if header.fortran_order else "C"
            array = flat.reshape(header.shape, order=order)
            arrays[member.filename.removesuffix(".npy")] = array
    return arrays


def _members(path: Path, names: list[str], split: str) -> tuple[str, str]:
    for x, y in (("x.npy", "y.npy"), (f"x_{split}.npy", f"y_{split}.npy")):
        if x in names and y in names:
            return x, y
    held = ", ".join(name.removesuffix(".npy") for name in names[:20]) or "nothing"
    raise UserError(
        f"{path.name}: holds {held}, but needs x and y, or x_{split} and y_{split}; "
        "write it with np.savez(file, x=..., y=...)"
    )


def _check_sizes(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse a bomb by the sizes that the zip directory declares.

    The declared size also ends the decompression of a member, so it cannot be an understatement.
    """
    if any(member.flag_bits & 1 for member in members):
        raise UserError(f"{path.name}: the archive is encrypted; write it with np.savez")
    total = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if total > LARGEST:
        raise UserError(f"{path.name}: would unpack to more than {LARGEST >> 30} GiB; split it")
    if total > UNSUSPICIOUS and total > LARGEST_RATIO * min(packed, path.stat().st_size):
        raise UserError(
            f"{path.name}: would unpack to over {LARGEST_RATIO} times its size, as a zip bomb does;"
            " write it with np.savez if it is genuine"
        )


def _header(path: Path, member: zipfile.ZipInfo, stream: IO[bytes]) -> Header:
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(stream)
    except ValueError:
        raise UserError(f"{path.name}: {member.filename} is not a NumPy array") from None
    name = member.filename.removesuffix(".npy")
    if dtype.hasobject:
        raise UserError(
            f"{path.name}: {name} holds Python objects, which are not loaded because they can run "
            "code; save it as an array of numbers or of text"
        )
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise UserError(f"{path.name}: {name} claims more records than the file holds")
    return Header(tuple(shape), dtype, fortran_order)


def _check_headers(path: Path, x: Header, y: Header, schema: Schema | None) -> None:
    for name, header in (("x", x), ("y", y)):
        if not header.shape or (header.fortran_order and len(header.shape) > 1):
            raise UserError(
                f"{path.name}: {name} must have records along its first axis, in C order; "
                "save np.ascontiguousarray of it"
            )
    if x.shape[0] != y.shape[0]:
        raise UserError(f"{path.name}: x and y have different lengths; save them row for row")
    if len(y.shape) != 1:
        raise UserError(f"{path.name}: y must be one label a record, of shape [n]")
    if schema is None:
        return
    if schema.is_image:
        try:
            check_images(schema, x.shape, x.dtype)
        except UserError as error:
            raise UserError(f"{path.name}: {error}") from None
    elif len(x.shape) != 2 or x.shape[1] != len(schema.columns):
        raise UserError(
            f"{path.name}: x must have the shape [n, {len(schema.columns)}], "
            "one column for each column of the schema, in its order"
        )


def _read(path: Path, stream: IO[bytes], header: Header, count: int) -> NDArray[Any]:
    """The next `count` records, decompressed piece by piece."""
    wanted = count * header.record_bytes
    buffer = bytearray()
    while len(buffer) < wanted:
        piece = stream.read(min(_PIECE, wanted - len(buffer)))
        if not piece:
            raise UserError(f"{path.name}: ends too early; it is truncated")
        buffer += piece
    return np.frombuffer(buffer, dtype=header.dtype).reshape(count, *header.shape[1:])


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        raise UserError(
            f"{path.name}: not an .npz file, or a damaged one; write it again with np.savez"
        ) from None
    except OSError as error:
        raise UserError(f"{path.name}: cannot be read: {error.strerror}") from None
