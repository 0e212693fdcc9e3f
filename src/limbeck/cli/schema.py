"""`limbeck schema draft` and `limbeck schema check`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson, print_json
from limbeck.errors import UserError

app = typer.Typer(help="Draft or check the public description of a data set.", no_args_is_help=True)


@app.command()
def draft(
    source: Annotated[
        str,
        typer.Argument(
            help="A .csv, .csv.gz, .parquet or .npz file, or a folder of class folders of images."
        ),
    ],
    label: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; default: the screen.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read the private rows and propose a schema, marked as drafted, to be reviewed by hand."""
    from limbeck.data.draft import draft

    if output is not None and output.exists():
        raise UserError(f"{output} exists; choose another name for the schema")
    drafted = draft(source, label)
    if output is not None:
        try:
            output.write_text(drafted.dumps(), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{output}: cannot be written ({error.strerror})") from None
    if as_json:
        print_json({"schema": drafted.to_dict(), "written": output and str(output)})
    elif output is None:
        print(drafted.dumps(), end="")
    else:
        print(
            f"{output}: drafted from the private rows. Review every bound, category and class, "
            "then delete the line drafted_from_private_data."
        )


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="The schema, a .toml file.")],
    source: Annotated[str, typer.Argument(help="The data that it should describe.")],
    as_json: AsJson = False,
) -> None:
    """Say where the data do not fit the schema. For the owner's eyes: findings are not private."""
    from limbeck.data.check import check
    from limbeck.data.schema import Schema

    findings = check(Schema.load(schema), source)
    if as_json:
        print_json({"schema": str(schema), "source": source, "findings": findings})
    else:
        for finding in findings:
            print(finding)
        print(f"{len(findings)} finding(s)" if findings else "the data fit the schema")
    if findings:
        raise typer.Exit(2)
