"""Settings of methods as text: `--set name=value`, by the types of the method's fields.

Nothing here imports a method before it is asked for, so that help and completion are quick.
"""

import ast
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import typer

from limbeck.errors import UserError, suggestion
from limbeck.method import (
    BUILT_IN,
    Method,
    alternatives,
    fields,
    method_names,
    registered,
    words_of,
)

TRUTH = {"true": True, "false": False, "yes": True, "no": False}


def configured(method: type[Method], common: Mapping[str, object], given: Iterable[str]) -> Method:
    """The method with the settings of common options and of `--set name=value`."""
    known = fields(method)
    settings = dict(common)
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--set {text}: write name=value, as in --set steps=100")
        if name in settings:
            raise UserError(f"{name} is given twice; give it once")
        settings[name] = parsed(name, known[name][1], value) if name in known else value
    for name in settings:
        if name not in known:
            raise UserError(f"{method.name} has no setting '{name}'{suggestion(name, known)}")
    return method(**settings)


def parsed(name: str, hint: Any, text: str) -> object:
    """The value of a setting, of the first of its types that the text can be.

    Examples
    --------
    >>> parsed("teachers", int | None, "4000"), parsed("teachers", int | None, "none")
    (4000, None)
    >>> parsed("widths", tuple[int, ...], "800,1000")
    (800, 1000)
    >>> parsed("steps", int, "many")
    Traceback (most recent call last):
    limbeck.errors.UserError: steps must be an integer, not 'many'
    """
    for part in alternatives(hint):
        try:
            return _parsed(part, text)
        except ValueError:
            continue
    raise UserError(f"{name} must be {kind(hint)}, not '{text}'")


def _parsed(part: Any, text: str) -> object:
    """The text as a value of a type that is no union; `ValueError` if it is none."""
    if part in (int, float, str):
        return part(text)
    if part is bool and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if part is NoneType and text.lower() == "none":
        return None
    if get_origin(part) is tuple:
        return tuple(_parsed(get_args(part)[0], piece) for piece in text.split(","))
    if text in words_of(part):
        return text
    raise ValueError(text)


def kind(hint: Any) -> str:
    """The type of a setting in words.

    Examples
    --------
    >>> kind(int | None), kind(tuple[int, ...])
    ('an integer or none', 'integers separated by commas')
    """
    kinds = [word for part in alternatives(hint) for word in _kinds(part)]
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)


def _kinds(part: Any) -> list[str]:
    """The alternatives that a type offers, each in words."""
    if get_origin(part) is tuple:
        number = "integers" if get_args(part)[0] is int else "numbers"
        return [f"{number} separated by commas"]
    plain = {
        int: "an integer", float: "a number", bool: "true or false", str: "a word", NoneType: "none"
    }  # fmt: skip
    return words_of(part) or [plain.get(part, "a value that only Python can give")]


def shown(value: object) -> str:
    """A value as `--set` takes it.

    Examples
    --------
    >>> shown((800, 1000)), shown(True), shown(None), shown(0.5)
    ('800,1000', 'true', 'none', '0.5')
    """
    if isinstance(value, tuple):
        return ",".join(map(shown, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def complete_method(incomplete: str) -> list[str]:
    """Names of methods for the shell."""
    return [name for name in method_names() if name.startswith(incomplete)]


def complete_setting(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the settings of the chosen method for the shell."""
    place = registered("limbeck.methods", BUILT_IN).get(ctx.params.get("method", ""), "")
    return [f"{name}=" for name in setting_names(place) if name.startswith(incomplete)]


def setting_names(place: str) -> list[str]:
    """Names of the settings of the method at "module:class", found without importing the module.

    They are read from its source code, base classes in the same file included, because importing a
    method takes seconds, which is long for completion.
    """
    module, _, name = place.partition(":")
    spec = importlib.util.find_spec(module) if module else None
    if spec is None or spec.origin is None:
        return []
    body = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    def names(of: str) -> list[str]:
        if of not in classes:
            return []
        inherited = [n for base in classes[of].bases for n in names(ast.unparse(base))]
        return inherited + [
            node.target.id
            for node in classes[of].body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and not ast.unparse(node.annotation).startswith("ClassVar")
        ]

    return names(name)
