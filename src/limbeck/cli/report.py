"""`limbeck report`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson, print_json


def report(
    bundle: Annotated[Path, typer.Argument(help="A folder that `distill` or `generate` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; default: report.html in BUNDLE."),
    ] = None,
    with_scores: Annotated[
        Path | None,
        typer.Option(
            help="What `limbeck evaluate --json` printed. Scores are private: the report is then "
            "written outside of the bundle."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a bundle as one web page that needs no network."""
    from limbeck.release.report import scores
    from limbeck.release.report.render import write

    added = None if with_scores is None else scores.read(with_scores)
    written = write(bundle, output, added)
    if as_json:
        print_json({"bundle": str(bundle), "report": str(written), "bytes": written.stat().st_size})
        return
    print(f"{written}: open it in a browser; it needs no network.")
    if added:
        print("It holds scores computed on private data: do not publish it without thought.")
    else:
        print("Everything in it comes from the bundle, so it may go wherever that may go.")
