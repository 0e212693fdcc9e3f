"""Reading the sections of a schema file with errors that name the section and the key."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from limbeck.data.values import Value
from limbeck.errors import UserError


@dataclass(frozen=True)
class Section:
    """One table of the file, and its name for error messages."""

    name: str
    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not isinstance(self.content, Mapping):
            raise UserError(f"{self.name} must be a table of keys and values")

    def allow(self, *keys: str) -> None:
        """Refuse every key that is not one of these."""
        for key in self.content:
            if key not in keys:
                hint = did_you_mean(str(key), keys) or f"; the keys are {', '.join(keys)}"
                raise UserError(f"{self.name}: unknown key {key!r}{hint}")

    def table(self, key: str) -> Mapping[str, Any]:
        """A table inside this one."""
        found = self._get(key, None)
        if not isinstance(found, Mapping):
            raise UserError(f"{self.name}: {key} must be a table, written [{key}]")
        return found

    def items(self, key: str) -> list[Value]:
        """A list of values."""
        found = self._get(key, None)
        if not isinstance(found, list | tuple):
            raise UserError(f"{self.name}: {key} must be a list of values")
        for item in found:
            check_scalar(f"{self.name}: {key}", item)
        return list(found)

    def strings(self, key: str) -> list[str]:
        """A list of texts, empty where the key is absent."""
        found = self.content.get(key, [])
        if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
            raise UserError(f"{self.name}: {key} must be a list of texts in quotes")
        return list(found)

    def string(self, key: str, default: str | None = None) -> str:
        """A text."""
        found = self._get(key, default)
        if not isinstance(found, str):
            raise UserError(f"{self.name}: {key} must be text in quotes")
        return found

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        found = self.content.get(key, default)
        if not isinstance(found, bool):
            raise UserError(f"{self.name}: {key} must be true or false")
        return found

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        found = self._get(key, default)
        if not isinstance(found, int) or isinstance(found, bool):
            raise UserError(f"{self.name}: {key} must be a whole number")
        return found

    def number(self, key: str) -> float:
        """A number, with or without a fraction."""
        found = self._get(key, None)
        if not isinstance(found, int | float) or isinstance(found, bool):
            raise UserError(f"{self.name}: {key} must be a number")
        return found

    def scalar(self, key: str) -> Value | None:
        """A single value, None where the key is absent."""
        if key not in self.content:
            return None
        return check_scalar(f"{self.name}: {key}", self.content[key])

    def _get(self, key: str, default: object) -> object:
        found = self.content.get(key, default)
        if found is None:
            raise UserError(f"{self.name}: {key} is missing")
        return found


def check_scalar(where: str, value: object) -> Value:
    """The value, if it is one that a cell can hold."""
    if isinstance(value, str | int | float | bool):
        return value
    raise UserError(f"{where} must hold text, numbers or booleans")


def did_you_mean(wrong: str, known: tuple[str, ...] | list[str]) -> str:
    """A hint that ends an error message, empty where nothing is similar."""
    close = get_close_matches(wrong, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
