"""`limbeck generate`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson
from limbeck.cli.making import (
    BUDGET,
    METHOD,
    VOTING,
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
    number_or_word,
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
    judged: Annotated[
        bool | None,
        typer.Option(
            "--judged/--not-judged",
            help="Draw pictures again that look like another class; dp-ntk, dp-merf, dp-hp.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    label_with: Annotated[
        str | None,
        typer.Option(
            help="class, or readout: pictures of the class that a private readout takes them for.",
            rich_help_panel=METHOD,
        ),
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
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Of the discriminator, a step; gan and dp-gan.", rich_help_panel=METHOD
        ),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(help="Chance of a record in a batch; dp-gan.", rich_help_panel=METHOD),
    ] = None,
    teachers: Annotated[
        int | None,
        typer.Option(min=1, help="Parts of the records; g-pate only.", rich_help_panel=VOTING),
    ] = None,
    updates: Annotated[
        int | None,
        typer.Option(min=1, help="Of each teacher in a step.", rich_help_panel=VOTING),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(help="What a teacher keeps from step to step.", rich_help_panel=VOTING),
    ] = None,
    votes_on: Annotated[
        str | None, typer.Option(help="classes or records.", rich_help_panel=VOTING)
    ] = None,
    variation: Annotated[
        int | None,
        typer.Option(
            min=0, help="Numbers of the code that votes on classes know.", rich_help_panel=VOTING
        ),
    ] = None,
    dimensions: Annotated[
        int | None,
        typer.Option(min=1, help="To which perturbations are projected.", rich_help_panel=VOTING),
    ] = None,
    bins: Annotated[
        int | None, typer.Option(help="To choose from in a vote.", rich_help_panel=VOTING)
    ] = None,
    clip: Annotated[
        str | None,
        typer.Option(help="Of a vote: a number, or normalise.", rich_help_panel=VOTING),
    ] = None,
    aggregate: Annotated[
        str | None, typer.Option(help="mean or argmax.", rich_help_panel=VOTING)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Share of teachers that must agree.", rich_help_panel=VOTING),
    ] = None,
    class_epsilon: Annotated[
        float | None, typer.Option(help="For the class counts.", rich_help_panel=VOTING)
    ] = None,
    discriminator: Annotated[
        str | None, typer.Option(help="small, conv or paper.", rich_help_panel=VOTING)
    ] = None,
    diagnose: Annotated[
        bool | None,
        typer.Option(
            "--diagnose",
            help="Tell you how far teachers agreed, which is private.",
            rich_help_panel=VOTING,
        ),
    ] = None,
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="Accept a method without privacy.", rich_help_panel=BUDGET
        ),
    ] = False,
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
        not_private=not_private,
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
        judged=judged,
        label_with=label_with,
        net=net,
        widths=None if widths is None else _whole_numbers(widths),
        frequencies=frequencies,
        order=order,
        rounds=rounds,
        sampling_rate=sampling_rate,
        teachers=teachers,
        updates=updates,
        memory=memory,
        votes_on=votes_on,
        variation=variation,
        dimensions=dimensions,
        bins=bins,
        clip=number_or_word(clip),
        aggregate=aggregate,
        threshold=threshold,
        class_epsilon=class_epsilon,
        discriminator=discriminator,
        diagnose=diagnose,
    )


def _whole_numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UserError(f"--widths {text}: give whole numbers and commas, as in 800,1000")
    return found
