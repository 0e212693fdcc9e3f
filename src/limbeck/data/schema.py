"""The public description of a private data set: columns, bounds, categories, classes.

Everything that other programs would read from the rows (ranges, lists of categories, the classes,
the number of rows) is declared here instead, because reading it from private rows is a leak. A
schema is written by hand, or drafted from the data and then reviewed:

    rows = "private"                  # or a whole number, which makes the row count public
    [label]
    name = "income"
    classes = ["<=50K", ">50K"]
    [columns.age]
    kind = "integer"
    minimum = 17
    maximum = 90
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from limbeck.data import parse, toml
from limbeck.data.column import Column, check_values
from limbeck.data.values import Value
from limbeck.errors import UserError

DRAFTED_HEADER = """\
The bounds, categories and classes below were READ FROM THE PRIVATE ROWS.
A release made with this file would reveal them. Review each one, replace it by what is
known without looking at the data, and then delete the line `drafted_from_private_data`."""


@dataclass(frozen=True)
class ImageShape:
    """The size of every image; pixels are whole numbers from 0 to 255."""

    height: int
    width: int
    channels: int = 1

    def __post_init__(self) -> None:
        for side in ("height", "width"):
            if getattr(self, side) < 1:
                raise UserError(f"[image] {side} must be at least 1")
        if self.channels not in (1, 3):
            raise UserError("[image] channels must be 1 (grey) or 3 (colour)")


@dataclass(frozen=True)
class Schema:
    """What is publicly known of a data set, before any of its rows is looked at.

    Either `columns` (a table) or `image` (equally sized images) describes a record.
    `public_rows` is the number of rows where that is declared public, otherwise None.
    `missing_values` are texts, such as `?`, that stand for a missing value in every column.
    `drafted` says that the domain was read from the private rows (`limbeck schema draft`).
    """

    classes: tuple[Value, ...]
    columns: tuple[Column, ...] = ()
    image: ImageShape | None = None
    label: str = "label"
    public_rows: int | None = None
    missing_values: tuple[str, ...] = ()
    drafted: bool = False

    def __post_init__(self) -> None:
        check_values("[label] classes", self.classes)
        if any(isinstance(value, float) for value in self.classes):
            raise UserError("[label] classes must be whole numbers, text or booleans")
        if len(self.classes) < 2:
            raise UserError("[label] classes needs at least two classes")
        if (self.image is None) == (not self.columns):
            raise UserError("describe the records by [columns.NAME] tables or by [image], not both")
        names = [column.name for column in self.columns]
        if self.label in names:
            raise UserError(f"the label {self.label!r} is also among the columns: remove one")
        if taken := {f"{self.label}={value}" for value in self.classes} & set(names):
            raise UserError(f"column {min(taken)!r} has the name of a label weight: rename it")
        if repeated := {name for name in names if names.count(name) > 1}:
            raise UserError(f"column {min(repeated)!r} is declared twice")
        if self.public_rows is not None and self.public_rows < 1:
            raise UserError('rows must be "private" or a whole number above 0')

    @property
    def is_image(self) -> bool:
        """Whether a record is an image rather than a row of a table."""
        return self.image is not None

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an image."""
        if self.image is None:
            raise UserError("this schema describes a table: it has columns, not an image shape")
        return self.image.height, self.image.width, self.image.channels

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        """One name for each encoded coordinate, such as `age` or `workclass=Private`."""
        if self.image is None:
            return tuple(name for column in self.columns for name in column.coordinate_names)
        height, width, channels = self.image_shape
        suffixes = [""] if channels == 1 else [f"_{c}" for c in range(channels)]
        return tuple(
            f"pixel_{i}_{j}{suffix}"
            for i in range(height)
            for j in range(width)
            for suffix in suffixes
        )

    @cached_property
    def width(self) -> int:
        """The number of coordinates of an encoded record."""
        if self.image is None:
            return sum(column.width for column in self.columns)
        height, width, channels = self.image_shape
        return height * width * channels

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a TOML file."""
        path = Path(path)
        try:
            written = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise UserError(
                f"{path}: no such schema file; `limbeck schema draft FILE -o {path.name}` makes one"
            ) from None
        except UnicodeDecodeError:
            raise UserError(f"{path}: not a text file in UTF-8; save the schema as such") from None
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
        return cls.loads(written, where=str(path))

    @classmethod
    def loads(cls, written: str, where: str = "schema") -> "Schema":
        """Read a schema from TOML text; `where` names it in error messages."""
        try:
            described = tomllib.loads(written)
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{where}: not valid TOML: {error}") from None
        return cls.from_dict(described, where=where)

    def dumps(self) -> str:
        """The schema as TOML; `Schema.loads` reads it back."""
        return toml.dumps(self.to_dict(), header=DRAFTED_HEADER if self.drafted else "")

    @classmethod
    def from_dict(cls, described: Mapping[str, Any], where: str = "schema") -> "Schema":
        """Build and check a schema from the dictionary that `to_dict` or a TOML file gives."""
        try:
            return cls(**_fields(described))
        except UserError as error:
            raise UserError(f"{where}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """The schema as plain JSON types, in the shape of the TOML file.

        The order of `columns` is the order of the encoded coordinates: keep it when writing JSON.
        """
        described: dict[str, Any] = {}
        if self.drafted:
            described["drafted_from_private_data"] = True
        described["rows"] = "private" if self.public_rows is None else self.public_rows
        if self.missing_values:
            described["missing_values"] = list(self.missing_values)
        described["label"] = {"name": self.label, "classes": list(self.classes)}
        if self.image is not None:
            described["image"] = dict(vars(self.image))
        else:
            described["columns"] = {column.name: column.to_dict() for column in self.columns}
        return described


class HasSchema(Protocol):
    """Something that has a public schema; private rows are passed around under this name."""

    @property
    def schema(self) -> Schema:
        """What is public of it."""
        ...


def _fields(described: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Schema` from its TOML shape."""
    top = parse.Section("the schema", described)
    top.allow("rows", "drafted_from_private_data", "missing_values", "label", "columns", "image")
    label = parse.Section("[label]", top.table("label"))
    label.allow("name", "classes")
    fields: dict[str, Any] = {
        "classes": tuple(label.items("classes")),
        "label": label.string("name", "label"),
        "drafted": top.boolean("drafted_from_private_data", False),
        "public_rows": _rows(described.get("rows", "private")),
        "missing_values": tuple(top.strings("missing_values")),
    }
    if "columns" in described:
        fields["columns"] = tuple(
            Column.from_dict(name, table) for name, table in top.table("columns").items()
        )
    if "image" in described:
        image = parse.Section("[image]", top.table("image"))
        image.allow("height", "width", "channels")
        fields["image"] = ImageShape(
            image.integer("height"), image.integer("width"), image.integer("channels", 1)
        )
    return fields


def _rows(declared: object) -> int | None:
    """The public number of rows, or None where it is private."""
    if declared == "private":
        return None
    if isinstance(declared, int) and not isinstance(declared, bool):
        return declared
    raise UserError('rows must be "private" or a whole number above 0')
