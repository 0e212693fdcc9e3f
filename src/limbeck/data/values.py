"""Values that a schema declares, and how a cell of a file is recognised as one of them.

The same category reaches us as `1` from Parquet, `1.0` from a column that once held a gap, and
`" 1"` from a CSV file. A declared value is therefore found by its text first and by its number
second, so that `"01"` and `"1"` stay two categories where both are declared.
"""

import math
from collections.abc import Iterable

Value = str | int | float | bool
_TRUTH = {"true": 1.0, "false": 0.0}


def text(value: object) -> str:
    """The value as text, without surrounding white space."""
    return str(value).strip()


def number(value: object) -> float | None:
    """The value as a finite number (`true` is 1), or None where it is not one."""
    written = text(value)
    if written.lower() in _TRUTH:
        return _TRUTH[written.lower()]
    if "_" in written:  # float("1_000") is Python's notation, not a data file's
        return None
    try:
        parsed = float(written)
    except ValueError:
        return None
    return parsed if math.isfinite(parsed) else None


class Lookup:
    """Finds the position of a cell among declared values.

    >>> Lookup([0, 1]).find("1.0")
    1
    >>> Lookup(["01", "1"]).find("01")
    0
    """

    def __init__(self, values: Iterable[Value]) -> None:
        self._by_text: dict[str, int] = {}
        self._by_number: dict[float, int | None] = {}
        for position, value in enumerate(values):
            self._by_text[text(value)] = position
            parsed = number(value)
            if parsed is not None:  # a number that two texts share identifies neither
                shared = parsed in self._by_number
                self._by_number[parsed] = None if shared else position

    def find(self, cell: object) -> int | None:
        """The position of the declared value that the cell stands for, or None."""
        found = self._by_text.get(text(cell))
        if found is not None:
            return found
        parsed = number(cell)
        return None if parsed is None else self._by_number.get(parsed)


def first_repeated(values: Iterable[Value]) -> Value | None:
    """The first value that no cell could tell from an earlier one, or None."""
    texts: set[str] = set()
    numbers: set[float] = set()
    for value in values:
        if text(value) in texts:
            return value
        texts.add(text(value))
        if not isinstance(value, str):
            if float(value) in numbers:
                return value
            numbers.add(float(value))
    return None
