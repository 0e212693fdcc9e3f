"""`limbeck`: the commands, and how they end."""

import io
import sys
from typing import Annotated

import typer

from limbeck.cli import evaluate, methods, options, report, reproduce, sample, schema
from limbeck.cli.console import Stopped
from limbeck.errors import UserError

INTERRUPTED = 130

app = typer.Typer(
    name="limbeck",
    help="Turn a private data set into a tiny or synthetic one that anyone may have, under a "
    "stated differential-privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("distill", help="Distil private records into a few points that anyone may have.")(
    options.command("limbeck.cli.run:distill", without=("records", "label_with"), method="readout")
)
app.command("generate", help="Learn a generator from private records, and draw records from it.")(
    options.command("limbeck.cli.run:generate", without=("per_class", "features"), method="dp-merf")
)
app.command("plan", help="Show what a run will measure and need, before any record is read.")(
    options.command(
        "limbeck.cli.plan:plan",
        without=("output", "not_private", "accept_drafted_schema", "seed", "overwrite"),
    )
)
app.command(name="sample")(sample.sample)
app.command(name="evaluate")(evaluate.evaluate)
app.command(name="report")(report.report)
app.add_typer(schema.app, name="schema")
app.command(name="reproduce")(reproduce.reproduce)
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
    if isinstance(sys.stdout, io.TextIOWrapper):  # an old terminal may lack ε and δ
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except UserError as error:
        code = _complain(str(error), 2)
    except Stopped as stop:
        code = _complain(str(stop), INTERRUPTED)
    except typer.TyperException as error:  # without a message, the help was printed instead
        message = error.format_message()
        code = _complain(f"{message.rstrip('.')}; see --help", 2) if message else 2
    else:
        if code == INTERRUPTED:  # before there was anything to spend
            _complain("interrupted; nothing was written", code)
    sys.exit(code)


def _complain(message: str, code: int) -> int:
    print(f"limbeck: {' '.join(message.split())}", file=sys.stderr)
    return code
