"""A small TOML writer, because Python reads the format but does not write it."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINE = 96


def dumps(document: Mapping[str, Any], header: str = "") -> str:
    """The document as TOML text, with `header` as a comment on top.

    A document is a dictionary of scalars, lists of scalars, and dictionaries of the same.
    """
    comment = [f"# {line}" for line in header.splitlines()]
    return "\n".join([*comment, *_table(document, path=())]).strip("\n") + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    """The lines of a table: its own keys first, then the tables inside it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"\n[{'.'.join(map(_key, path))}]"] if path and (plain or not inner) else []
    lines += [_assignment(_key(key), value) for key, value in plain.items()]
    for key, value in inner.items():
        lines += _table(value, (*path, key))
    return lines


def _assignment(key: str, value: Any) -> str:
    line = f"{key} = {_value(value)}"
    if len(line) <= _LINE or not isinstance(value, list | tuple):
        return line
    return f"{key} = [\n{_wrapped([_value(item) for item in value])}\n]"


def _wrapped(items: Sequence[str]) -> str:
    """The items of a long list, as many on a line as fit."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 4 > _LINE:
            lines.append("")
        lines[-1] += f" {item}," if lines[-1] else f"    {item},"
    return "\n".join(lines)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return repr(value)


def _string(value: str) -> str:
    """A basic string. JSON escapes the same characters in the same way, all but DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
