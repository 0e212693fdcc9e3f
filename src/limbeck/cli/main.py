"""`limbeck`: the commands, and how they end."""

import sys
from typing import Annotated

import typer

from limbeck.cli import distill, evaluate, methods, schema
from limbeck.cli.console import Stopped
from limbeck.errors import UserError

app = typer.Typer(
    name="limbeck",
    help="Turn a private data set into a tiny one that anyone may have, under a stated "
    "differential-privacy guarantee.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(name="distill")(distill.distill)
app.command(name="evaluate")(evaluate.evaluate)
app.add_typer(schema.app, name="schema")
app.command(name="methods")(methods.methods)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"limbeck {version('limbeck')}")
        raise typer.Exit


@app.callback()
def limbeck(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Private data in, a few public points out."""


def main() -> None:
    """Run a command; a user's mistake is one line and exit code 2, an interrupt is 130."""
    try:
        app()
    except UserError as error:
        sys.exit(_complain(str(error), 2))
    except Stopped as stop:
        sys.exit(_complain(str(stop), 130))


def _complain(message: str, code: int) -> int:
    print(f"limbeck: {' '.join(message.split())}", file=sys.stderr)
    return code
