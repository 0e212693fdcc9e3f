"""`limbeck evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson, print_json, stages
from limbeck.errors import UserError

EVALUATORS = {"krr": "limbeck.evaluate.krr"}


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="A folder that `limbeck distill` wrote.")],
    on: Annotated[
        str, typer.Option(help="Real records: a named set (its test split) or a file or folder.")
    ],
    evaluators: Annotated[
        str, typer.Option("--with", help="Evaluators, separated by commas: krr.")
    ] = "krr",
    as_json: AsJson = False,
) -> None:
    """Score a bundle on real records. The scores are not private: they are not put into it."""
    import importlib

    names = [name.strip() for name in evaluators.split(",")]
    for name in names:
        if name not in EVALUATORS:
            raise UserError(f"there is no evaluator '{name}'; choose from: {', '.join(EVALUATORS)}")
    from limbeck.bundle import load
    from limbeck.data.source import open_source

    release = load(bundle)
    test = open_source(on, release.schema, "test")
    scores = []
    with stages() as progress:
        for name in names:
            scores += importlib.import_module(EVALUATORS[name]).evaluate(release, test, progress)
    if as_json:
        print_json(
            {"bundle": str(bundle), "on": on, "scores": [score.to_json() for score in scores]}
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("evaluator", "metric", "value", title=f"{bundle} on {test.name}")
    for score in scores:
        table.add_row(score.evaluator, score.metric, f"{score.value:.4f}")
    Console().print(table)
    print("Computed on real records: not private, do not publish without thought.")
