"""The public benchmark sets that are known by name, each with a built-in public schema."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from limbeck.data.encode import Batch, encode_images, encode_labels, encode_table
from limbeck.data.schema import Schema
from limbeck.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

FOLDER_VARIABLE = "LIMBECK_DATA"
_FIFTH = 5

Mask = NDArray[np.bool_]
Keep = Callable[["pd.DataFrame", NDArray[np.int64], str], Mask]


def every_fifth(frame: "pd.DataFrame | None", positions: NDArray[np.int64], split: str) -> Mask:
    """The fifth, tenth, ... row of the file is for testing."""
    for_test: Mask = positions % _FIFTH == 0
    return for_test if split == "test" else ~for_test


def by_column(column: str, **parts: str) -> Keep:
    """A column of the file says which rows are for training and which for testing."""

    def keep(frame: "pd.DataFrame", positions: NDArray[np.int64], split: str) -> Mask:
        return np.asarray(frame[column] == parts[split], dtype=bool)

    return keep


def fairly_complete(frame: "pd.DataFrame", positions: NDArray[np.int64], split: str) -> Mask:
    """Every fifth row is for testing; rows with ten or more gaps are left out, as is customary."""
    gaps = np.asarray((frame == "?").sum(axis=1))
    return np.logical_and(every_fifth(frame, positions, split), gaps < 10)


@dataclass(frozen=True)
class Named:
    """Where a named set is found, and which of its rows are for training.

    `keep` selects rows of a table, by position or by values of the same row; arrays come split.
    `url` and `sha256` are set where a stable public file of the same layout exists.
    """

    file: str
    keep: Keep | None = None
    also: tuple[str, ...] = ()  # columns that `keep` needs and the schema lacks
    url: str = ""
    sha256: str = ""


NAMED: dict[str, Named] = {
    "digits": Named(file=""),  # inside scikit-learn
    "mnist": Named(
        file="mnist.npz",
        # The file and the checksum of keras.datasets.mnist.
        url="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
        sha256="731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    ),
    "fashion_mnist": Named(file="fashion_mnist.npz"),
    "cifar10": Named(file="cifar10.npz"),
    "adult": Named("adult.parquet", by_column("split", train="train", test="test"), ("split",)),
    "credit": Named("credit.parquet", every_fifth),
    "cervical": Named("cervical.csv.gz", fairly_complete, ("STDs:vaginal condylomatosis",)),
    "covtype": Named("covtype.parquet", every_fifth),
    "intrusion": Named("intrusion.parquet", every_fifth),
    "isolet": Named(
        "isolet_parts_1_and_5.parquet",
        by_column("part", train="isolet1", test="isolet5"),
        ("part",),
    ),
}


def schema_of(name: str, split: str = "train") -> Schema:
    """The built-in public schema of a named set; it declares the number of training rows only."""
    written = files("limbeck.data").joinpath("schemas", f"{name}.toml").read_text("utf-8")
    schema = Schema.loads(written, where=f"the built-in schema of {name}")
    return schema if split == "train" else replace(schema, public_rows=None)


def reader(name: str, schema: Schema, split: str) -> Callable[[int], Iterator[Batch]]:
    """How to read the encoded records of one split."""
    if name == "digits":
        return partial(_digits, schema, split)
    path = find(name)
    if path.suffix == ".npz":
        from limbeck.data.arrays import npz_batches

        return partial(npz_batches, path, schema, split)
    return partial(_table, path, schema, NAMED[name], split)


def find(name: str) -> Path:
    """The file of a named set: in `$LIMBECK_DATA`, in the cache, or downloaded into the cache."""
    import pooch

    entry = NAMED[name]
    folder = os.environ.get(FOLDER_VARIABLE)
    cache = Path(pooch.os_cache("limbeck"))
    for place in [*([Path(folder)] if folder else []), cache]:
        if (place / entry.file).is_file():
            return place / entry.file
    if entry.url:
        return _download(name, entry, cache)
    raise UserError(_advice(name, entry, "there is no download for it"))


def _download(name: str, entry: Named, cache: Path) -> Path:
    import pooch

    try:
        return Path(pooch.retrieve(entry.url, entry.sha256, entry.file, cache))
    except (OSError, ValueError):  # requests' errors are OSErrors; a bad checksum a ValueError
        raise UserError(_advice(name, entry, "the download failed")) from None


def _advice(name: str, entry: Named, why: str) -> str:
    return (
        f"{name}: {entry.file} was not found and {why}; "
        f"put it in a folder and set {FOLDER_VARIABLE} to that folder"
    )


def _table(path: Path, schema: Schema, entry: Named, split: str, size: int) -> Iterator[Batch]:
    """The rows of one split of a table."""
    from limbeck.data.tables import frames

    assert entry.keep is not None
    wanted = [*(column.name for column in schema.columns), schema.label]
    wanted += [name for name in entry.also if name not in wanted]
    for first_row, frame in frames(path, wanted, size):
        chosen = entry.keep(frame, np.arange(first_row, first_row + len(frame)), split)
        x, y = encode_table(schema, frame, first_row)
        yield x[chosen], y[chosen]


def _digits(schema: Schema, split: str, size: int) -> Iterator[Batch]:
    """The 8×8 digits of scikit-learn, whose 17 grey levels are spread over 0..255."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    chosen = every_fifth(None, np.arange(1, len(images) + 1), split)
    x, y = encode_images(schema, images[chosen]), encode_labels(schema, digits.target[chosen])
    for start in range(0, len(y), size):
        yield x[start : start + size], y[start : start + size]
