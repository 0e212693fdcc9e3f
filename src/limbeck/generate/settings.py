"""Settings that cannot be are refused, by their name on the command line."""

import dataclasses
import math
from typing import Any, get_args

from limbeck.errors import UserError


def check_settings(settings: Any, may_be_zero: tuple[str, ...] = ()) -> None:
    """Numbers must be positive and finite, words among those that the type lists."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        option = "--" + field.name.replace("_", "-")
        if isinstance(value, bool) or (value is None and type(None) in get_args(field.type)):
            continue
        if isinstance(value, int | float):
            if not 0 < value < math.inf and not (value == 0 and field.name in may_be_zero):
                raise UserError(f"{option} must be a positive number, not {value:g}")
        else:
            listed = [w for part in (field.type, *get_args(field.type)) for w in get_args(part)]
            words = [word for word in listed if isinstance(word, str)]
            if not words:
                raise UserError(f"{option} must be a number, not '{value}'")
            if value not in words:
                raise UserError(f"{option} must be one of {', '.join(words)}, not '{value}'")
