"""`limbeck generate`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson
from limbeck.cli.making import (
    METHOD,
    AcceptDrafted,
    Asked,
    Delta,
    Epsilon,
    Neighbours,
    Output,
    Overwrite,
    SchemaFile,
    Seed,
    Source,
    make,
)
from limbeck.errors import UserError


def generate(
    source: Source,
    output: Output = Path("release"),
    records: Annotated[
        int | None, typer.Option("-n", "--records", min=1, help="How many records to make.")
    ] = None,
    schema: SchemaFile = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    adjacency: Neighbours = "add-remove",
    accept_drafted_schema: AcceptDrafted = False,
    method: Annotated[
        str, typer.Option(help="See `limbeck methods`.", rich_help_panel=METHOD)
    ] = "dp-merf",
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Steps that the generator is trained.", rich_help_panel=METHOD),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Generated records a step.", rich_help_panel=METHOD)
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(rich_help_panel=METHOD)] = None,
    code: Annotated[
        int | None,
        typer.Option(min=1, help="Random numbers that make a record.", rich_help_panel=METHOD),
    ] = None,
    net: Annotated[
        str | None, typer.Option(help="fc or cnn; dp-ntk only.", rich_help_panel=METHOD)
    ] = None,
    widths: Annotated[
        str | None,
        typer.Option(
            help="Of the network; dp-ntk: 800, or 800,1000; cnn: 30,200.", rich_help_panel=METHOD
        ),
    ] = None,
    frequencies: Annotated[
        int | None, typer.Option(min=1, help="dp-merf only.", rich_help_panel=METHOD)
    ] = None,
    order: Annotated[
        int | None,
        typer.Option(min=1, help="Of the polynomials; dp-hp only.", rich_help_panel=METHOD),
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Learn a generator from private records; it makes as many records as anyone likes."""
    asked = Asked(
        source=source,
        schema=schema,
        output=output,
        method=method,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        not_private=False,
        accept_drafted_schema=accept_drafted_schema,
        seed=seed,
        overwrite=overwrite,
        as_json=as_json,
    )
    make(
        "generate",
        asked,
        records=records,
        steps=steps,
        batch=batch,
        learning_rate=learning_rate,
        code=code,
        net=net,
        widths=None if widths is None else _whole_numbers(widths),
        frequencies=frequencies,
        order=order,
    )


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UserError(f"--widths {text}: give whole numbers and commas, as in 800,1000")
    return found
