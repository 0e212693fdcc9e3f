"""`limbeck distill`."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from limbeck.cli.console import AsJson, peak_memory_mb, print_json, stages
from limbeck.errors import UserError

Source = Annotated[
    str, typer.Argument(help="A named set (digits, mnist, adult, ...) or a file or folder.")
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="The public description (TOML) of a file or folder.")
]
METHOD, BUDGET = "Method", "Budget"


def distill(
    source: Source,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")] = Path(
        "release"
    ),
    schema: SchemaFile = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="How much privacy may be spent: 1 is strong, 10 weak.", rich_help_panel=BUDGET
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(help="Well below one over the number of records.", rich_help_panel=BUDGET),
    ] = 1e-5,
    adjacency: Annotated[
        str, typer.Option(help="add-remove or replace.", rich_help_panel=BUDGET)
    ] = "add-remove",
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="Allow a method without privacy.", rich_help_panel=BUDGET
        ),
    ] = False,
    accept_drafted_schema: Annotated[
        bool,
        typer.Option(
            "--accept-drafted-schema",
            help="Use a schema drafted from the private rows; the statement will say so.",
            rich_help_panel=BUDGET,
        ),
    ] = False,
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
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="For tests and papers: the bundle is not for release."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the bundle.")] = False,
    as_json: AsJson = False,
) -> None:
    """Distil private records into a few points that anyone may have."""
    budget = _budget(method, epsilon, delta, adjacency, not_private)
    from limbeck.data.private import open_private

    private = open_private(source, schema, accept_drafted_schema=accept_drafted_schema)
    from limbeck.bundle import check_destination

    check_destination(output, overwrite)
    config = _configured(
        method,
        features=features,
        per_class=per_class,
        epochs=epochs,
        steps=steps,
        sampling_rate=sampling_rate,
        batch=batch,
        learning_rate=learning_rate,
        clip=_number_or_word(clip),
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
    with stages() as progress:
        bundle = config.fit(private, budget, seed=seed, progress=progress)
        progress("write", 0, 0)
        bundle.save(output, overwrite=overwrite)
    if as_json:
        print_json(
            {
                "bundle": str(output),
                "method": method,
                "epsilon": None if budget is None else bundle.epsilon,
                "delta": None if budget is None else budget.delta,
                "records": len(bundle.points),
                "seconds": progress.seconds,
                "peak_memory_mb": peak_memory_mb(),
            }
        )
        return
    seconds = sum(progress.seconds.values())
    print(bundle.statement())
    print(f"{len(bundle.points)} points by {method} in {seconds:.0f} s: {output}/")
    print(f"Look at them with: limbeck report {output}")
    print(f"Score them with: limbeck evaluate {output} --on {_test_split(source)}")


def _configured(method: str, **given: Any) -> Any:
    """The method's configuration, with what was given on the command line."""
    from limbeck.methods import find

    config = find(method).load()
    given = {name: value for name, value in given.items() if value is not None}
    known = {field.name for field in dataclasses.fields(config)}
    for name in given:
        if name not in known:
            raise UserError(f"{method} has no option --{name.replace('_', '-')}")
    return config(**given)


def _number_or_word(given: str | None) -> float | str | None:
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _budget(
    method: str, epsilon: float | None, delta: float, adjacency: str, not_private: bool
) -> Any:
    """The budget, or None where the user says that there is to be none."""
    from limbeck.methods import find
    from limbeck.privacy.budget import Adjacency, Budget

    if not find(method).private:
        if not not_private:
            raise UserError(f"{method} gives no privacy at all; say --not-private if you mean that")
        if epsilon is not None:
            raise UserError(f"{method} gives no privacy, so --epsilon means nothing; leave it out")
        return None
    if not_private:
        raise UserError(f"{method} is private; leave out --not-private")
    if epsilon is None:
        raise UserError("say how much privacy may be spent: --epsilon 1, for example")
    try:
        neighbours = Adjacency(adjacency)
    except ValueError:
        raise UserError(f"--adjacency is add-remove or replace, not '{adjacency}'") from None
    return Budget(epsilon=epsilon, delta=delta, adjacency=neighbours)


def _test_split(source: str) -> str:
    from limbeck.data.named import NAMED

    name = source.partition(":")[0]
    return f"{name}:test" if name in NAMED else "TEST_FILE"
