"""Opening a source of records: a named set, a table, an `.npz` file or a folder of images.

Reading is lazy and in bounded pieces; nothing larger than a batch of records is held at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, cast

from limbeck.data.encode import Batch
from limbeck.data.parse import did_you_mean
from limbeck.data.schema import Schema
from limbeck.errors import UserError

Split = Literal["train", "test"]
Reader = Callable[[int], Iterator[Batch]]
BATCH = 4096

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")


@dataclass(frozen=True)
class Source:
    """Records that can be read again and again, encoded by the schema."""

    name: str
    schema: Schema
    read: Reader = field(repr=False, compare=False)

    def batches(self, size: int = BATCH) -> Iterator[Batch]:
        """Encoded batches `(x, y)` of at most `size` records each; at least one record in all."""
        empty = True
        for x, y in self.read(size):
            if len(y):
                empty = False
                yield x, y
        if empty:
            raise UserError(f"{self.name}: there are no rows; check that this is the right file")


def open_source(
    spec: str | Path, schema: Schema | str | Path | None = None, split: Split | None = None
) -> Source:
    """Open `mnist`, `mnist:test`, or the path of a file or folder.

    A path needs a schema, given as such or as the path of its TOML file; a named set has its own.
    `split` (train where it is not given) chooses a part of a named set or of an `.npz` file with
    `x_train` and the like. A split written in the spec wins; other paths have no splits.
    """
    from limbeck.data import named

    declared = schema if isinstance(schema, Schema) or schema is None else Schema.load(schema)
    if isinstance(spec, str):
        name, _, part = spec.partition(":")
        if name in named.NAMED:
            chosen = _split(spec, part or split or "train")
            own = declared or named.schema_of(name, chosen)
            return Source(f"{name}:{chosen}", own, named.reader(name, own, chosen))
    path = existing_path(spec)
    if declared is None:
        raise UserError(
            f"{path}: a schema is needed, which declares what is public of the data; "
            f"`limbeck schema draft {path} -o schema.toml` makes a first one to review"
        )
    return Source(path.name, declared, reader(path, declared, split or "train"))


def reader(path: Path, schema: Schema, split: Split) -> Reader:
    """How to read the encoded records of a file or folder."""
    if path.is_dir():
        from limbeck.data.images import folder_batches

        return partial(folder_batches, path, schema)
    if path.name.endswith(".npz"):
        from limbeck.data.arrays import npz_batches

        return partial(npz_batches, path, schema, split)
    from limbeck.data.tables import table_batches

    return partial(table_batches, path, schema)


def existing_path(spec: str | Path) -> Path:
    """The path, if it is that of a folder or of a kind of file that can be read."""
    from limbeck.data.named import NAMED

    path = Path(spec)
    try:
        if path.is_dir() or (path.exists() and path.name.endswith(SUFFIXES)):
            return path
        if path.exists():
            raise UserError(f"{path}: unknown kind of file; it must end in {', '.join(SUFFIXES)}")
        neighbours = sorted(item.name for item in path.parent.iterdir())
    except OSError:
        neighbours = []
    hint = did_you_mean(path.name, [*neighbours, *NAMED])
    raise UserError(f"{spec}: no such file, folder or named set{hint}")


def _split(spec: str, part: str) -> Split:
    if part in ("train", "test"):
        return cast(Split, part)
    raise UserError(f"{spec}: the split must be train or test, as in {spec.split(':')[0]}:test")
