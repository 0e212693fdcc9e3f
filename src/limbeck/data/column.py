"""One declared column of a table: its kind, its domain, and what to do with unfit values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from limbeck.data import parse
from limbeck.data.values import Lookup, Value, first_repeated
from limbeck.errors import UserError

KEYS: dict[str, tuple[str, ...]] = {
    "numeric": ("minimum", "maximum", "missing"),
    "integer": ("minimum", "maximum", "missing"),
    "ordinal": ("values", "other", "missing"),
    "categorical": ("values", "other", "missing"),
    "boolean": ("missing",),
}

LARGEST_INTEGER = 2**53  # beyond it, floating point no longer tells neighbours apart


@dataclass(frozen=True)
class Column:
    """A column and its domain.

    `numeric` and `integer` have bounds, outside of which values are clamped. `ordinal` and
    `categorical` list their values; any other value becomes `other`, or is refused where there is
    none. A missing value becomes `missing`, or is refused where there is none.
    """

    name: str
    kind: str
    minimum: float = 0
    maximum: float = 1
    values: tuple[Value, ...] = ()
    other: Value | None = None
    missing: Value | None = None

    def __post_init__(self) -> None:
        where = f"column {self.name!r}"
        if self.kind not in KEYS:
            hint = (
                parse.did_you_mean(str(self.kind), list(KEYS)) or f"; there are {', '.join(KEYS)}"
            )
            raise UserError(f"{where}: unknown kind {self.kind!r}{hint}")
        if self.is_number:
            self._check_bounds(where)
        elif self.kind != "boolean":
            self._check_domain(where)
        if self.missing is not None and not self._admits(self.missing):
            raise UserError(f"{where}: missing must be a value of the column's own domain")

    @property
    def is_number(self) -> bool:
        """Whether the column is measured on a bounded scale."""
        return self.kind in ("numeric", "integer")

    @property
    def domain(self) -> tuple[Value, ...]:
        """Every value that an ordinal, categorical or boolean column can have, in order."""
        if self.kind == "boolean":
            return (False, True)
        if self.other is None or Lookup(self.values).find(self.other) is not None:
            return self.values
        return (*self.values, self.other)

    @property
    def width(self) -> int:
        """The number of encoded coordinates: one per category, otherwise one."""
        return len(self.domain) if self.kind == "categorical" else 1

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """One name per encoded coordinate."""
        if self.kind == "categorical":
            return tuple(f"{self.name}={value}" for value in self.domain)
        return (self.name,)

    @classmethod
    def from_dict(cls, name: str, described: Mapping[str, Any]) -> "Column":
        """Build a column from its table in the schema file."""
        section = parse.Section(f"column {name!r}", described)
        kind = section.string("kind")
        keys = KEYS.get(kind)
        if keys is None:
            return cls(name, kind)  # which refuses it
        section.allow("kind", *keys)
        fields: dict[str, Any] = {key: section.scalar(key) for key in ("other", "missing")}
        if "minimum" in keys:
            fields |= {key: section.number(key) for key in ("minimum", "maximum")}
        if "values" in keys:
            fields["values"] = tuple(section.items("values"))
        return cls(name, kind, **fields)

    def to_dict(self) -> dict[str, Any]:
        """The column's table in the schema file."""
        described: dict[str, Any] = {"kind": self.kind}
        for key in KEYS[self.kind]:
            value = getattr(self, key)
            if value is not None:
                described[key] = list(value) if key == "values" else value
        return described

    def _check_bounds(self, where: str) -> None:
        if not (math.isfinite(self.minimum) and math.isfinite(self.maximum)):
            raise UserError(f"{where}: minimum and maximum must be finite")
        if self.minimum >= self.maximum:
            raise UserError(f"{where}: minimum must be below maximum")
        if not math.isfinite(float(self.maximum) - float(self.minimum)):
            raise UserError(f"{where}: the range from minimum to maximum is too wide")
        if self.kind == "integer" and (self.minimum % 1 or self.maximum % 1):
            raise UserError(f"{where}: minimum and maximum of an integer must be whole numbers")
        if self.kind == "integer" and max(abs(self.minimum), abs(self.maximum)) > LARGEST_INTEGER:
            raise UserError(f"{where}: so large an integer needs the kind numeric")

    def _check_domain(self, where: str) -> None:
        check_values(f"{where}: values", self.values)
        if self.kind == "ordinal" and len(self.domain) > len(self.values):
            raise UserError(f"{where}: other must be one of the ordered values")
        if len(self.domain) < 2:
            raise UserError(f"{where}: values needs at least two values")

    def _admits(self, value: Value) -> bool:
        if not self.is_number:
            return Lookup(self.domain).find(value) is not None
        if isinstance(value, str | bool) or not self.minimum <= value <= self.maximum:
            return False
        return self.kind == "numeric" or value % 1 == 0


def check_values(where: str, values: Sequence[Value]) -> None:
    """Refuse values that cannot be told apart or that no cell can hold."""
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{where}: infinite and undefined numbers cannot be declared")
        if isinstance(value, str) and not value.strip():
            raise UserError(f"{where}: an empty text cannot be declared; it means a missing value")
    repeated = first_repeated(values)
    if repeated is not None:
        raise UserError(f"{where}: {repeated!r} is listed twice")
