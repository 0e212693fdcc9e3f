"""`limbeck methods`."""

from typing import Annotated, TypedDict

import typer
from rich.console import Console
from rich.table import Table

from limbeck.cli.console import AsJson, print_json
from limbeck.cli.settings import complete_method, kind, shown
from limbeck.errors import UserError
from limbeck.method import Method, fields, find, method_names

Name = Annotated[
    str | None,
    typer.Argument(help="A method, to show its settings.", autocompletion=complete_method),
]


def methods(name: Name = None, as_json: AsJson = False) -> None:
    """List the methods, or show one with its settings."""
    if name is None:
        _list(as_json)
    elif as_json:
        method = find(name)
        print_json({**_described(method), "settings": _settings(method)})
    else:
        _show(find(name))


def _list(as_json: bool) -> None:
    """All methods; one of another package that cannot be imported is listed with the reason."""
    rows = []
    for name in method_names():
        try:
            rows.append(_described(find(name)))
        except (AttributeError, ImportError, UserError) as error:
            rows.append({"method": name, "error": str(error)})
    if as_json:
        print_json({"methods": rows})
        return
    table = Table("method", "command", "what it does", "guarantee", "paper")
    for row in rows:
        told = "command", "summary", "guarantee", "paper"
        cells = [row["error"]] if "error" in row else [str(row[key]) for key in told]
        table.add_row(str(row["method"]), *map(str, cells))
    Console(markup=False, highlight=False).print(table)
    print("limbeck methods NAME shows the settings of a method.")


def _show(method: type[Method]) -> None:
    console = Console(markup=False, highlight=False)
    console.print(f"{method.name}: {method.summary}")
    console.print(f"command: limbeck {method.command} --method {method.name}")
    console.print(f"guarantee: {method.guarantee}")
    console.print(f"paper: {method.paper}")
    console.print(f"documentation: {method.docs}")
    table = Table("setting", "type", "default", "meaning")
    for row in _settings(method):
        table.add_row(row["setting"], row["type"], shown(row["default"]), row["meaning"])
    console.print(table)


def _described(method: type[Method]) -> dict[str, str | bool]:
    return {
        "method": method.name,
        "command": method.command,
        "summary": method.summary,
        "guarantee": method.guarantee,
        "paper": method.paper,
        "docs": method.docs,
        "private": method.private,
    }


class Setting(TypedDict):
    """A setting as it is printed; the default has the type of the setting."""

    setting: str
    type: str
    default: object
    meaning: str


def _settings(method: type[Method]) -> list[Setting]:
    return [
        {
            "setting": name,
            "type": kind(hint).removeprefix("an ").removeprefix("a "),
            "default": field.default,
            "meaning": field.metadata["meaning"],
        }
        for name, (field, hint) in fields(method).items()
    ]
