"""`limbeck distill`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson
from limbeck.cli.making import (
    BUDGET,
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
    number_or_word,
)


def distill(
    source: Source,
    output: Output = Path("release"),
    schema: SchemaFile = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    adjacency: Neighbours = "add-remove",
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="Allow a method without privacy.", rich_help_panel=BUDGET
        ),
    ] = False,
    accept_drafted_schema: AcceptDrafted = False,
    method: Annotated[
        str, typer.Option(help="See `limbeck methods`.", rich_help_panel=METHOD)
    ] = "readout",
    features: Annotated[
        str | None,
        typer.Option(
            help="The kernel: fc-ntk; bins for tables; for pictures whitened-scatter, scatter, "
            "e-ntk, perceptual.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    per_class: Annotated[
        int | None, typer.Option(min=1, help="Points for each class.", rich_help_panel=METHOD)
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(help="How often a record is drawn on average.", rich_help_panel=METHOD),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Gradient steps; readout and kip.", rich_help_panel=METHOD),
    ] = None,
    sampling_rate: Annotated[
        float | None,
        typer.Option(help="Chance of a record to be in a batch.", rich_help_panel=METHOD),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1, help="Expected batch size, if the row count is public.", rich_help_panel=METHOD
        ),
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(rich_help_panel=METHOD)] = None,
    clip: Annotated[
        str | None,
        typer.Option(
            help="Clip gradients to this norm; or auto, or normalise.", rich_help_panel=METHOD
        ),
    ] = None,
    clip_in: Annotated[
        str | None,
        typer.Option(
            help="On features, clip at: readout, features or pixels.", rich_help_panel=METHOD
        ),
    ] = None,
    corrupt: Annotated[
        float | None,
        typer.Option(help="Share of the pixels that stay noise.", rich_help_panel=METHOD),
    ] = None,
    coordinates: Annotated[
        str | None,
        typer.Option(help="Of images: low-frequency or all.", rich_help_panel=METHOD),
    ] = None,
    optimiser: Annotated[
        str | None, typer.Option(help="adam or sgd.", rich_help_panel=METHOD)
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="cosine or constant.", rich_help_panel=METHOD)
    ] = None,
    regularisation: Annotated[
        float | None,
        typer.Option(help="Ridge, relative to the kernel's diagonal.", rich_help_panel=METHOD),
    ] = None,
    label_solve: Annotated[
        bool | None,
        typer.Option(
            "--label-solve", help="Solve for the labels; kip only.", rich_help_panel=METHOD
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="soft or hard; readout only.", rich_help_panel=METHOD)
    ] = None,
    box: Annotated[
        bool | None,
        typer.Option(
            "--box",
            help="Keep points in the range of records; readout only.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    smoothness: Annotated[
        float | None,
        typer.Option(help="Weight of smooth pictures; readout only.", rich_help_panel=METHOD),
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Distil private records into a few points that anyone may have."""
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
        "distill",
        asked,
        features=features,
        per_class=per_class,
        epochs=epochs,
        steps=steps,
        sampling_rate=sampling_rate,
        batch=batch,
        learning_rate=learning_rate,
        clip=number_or_word(clip),
        clip_in=clip_in,
        corrupt=corrupt,
        coordinates=coordinates,
        optimiser=optimiser,
        schedule=schedule,
        regularisation=regularisation,
        label_solve=label_solve,
        labels=labels,
        box=box,
        smoothness=smoothness,
    )
