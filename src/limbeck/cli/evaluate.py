"""`limbeck evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limbeck.cli.console import AsJson, print_json, stages
from limbeck.errors import UserError

if TYPE_CHECKING:
    from limbeck.data.schema import Schema
    from limbeck.data.source import Source
    from limbeck.evaluate.score import Score

NOT_PRIVATE = "Computed on real records: not private, do not publish without thought."

EVALUATORS = {
    "krr": "limbeck.evaluate.krr:evaluate",
    "logreg": "limbeck.evaluate.classical:logreg",
    "mlp": "limbeck.evaluate.classical:mlp",
    "convnet": "limbeck.evaluate.networks:convnet",
    "convnet-soft": "limbeck.evaluate.networks:convnet_soft",
    "cnn": "limbeck.evaluate.networks:cnn",
    "tabular": "limbeck.evaluate.classical:tabular",
    "credit": "limbeck.evaluate.classical:credit",
    "similarity": "limbeck.evaluate.similarity:evaluate",
    "frechet": "limbeck.evaluate.images:evaluate",
}


def evaluate(
    bundle: Annotated[Path, typer.Argument(help="A folder that `distill` or `generate` wrote.")],
    on: Annotated[
        str, typer.Option(help="Real records: a named set (its test split) or a file or folder.")
    ],
    evaluators: Annotated[
        str | None,
        typer.Option(
            "--with",
            help=f"Separated by commas: {', '.join(EVALUATORS)}. If none are named, krr for "
            "distilled points, logreg for generated records.",
        ),
    ] = None,
    real: Annotated[
        str | None,
        typer.Option(
            help="Real records to train on for comparison: a named set, a file or folder, or none; "
            "the train split where --on is a named set."
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Smaller networks, fewer real records to train on.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the models that are trained.")] = 0,
    save: Annotated[
        Path | None, typer.Option(help="Write the scores to this file, for `limbeck report`.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score a bundle on real records. The scores are not private: they are not put into it."""
    names = [name.strip() for name in evaluators.split(",")] if evaluators else []
    for name in names:
        if name not in EVALUATORS:
            raise UserError(f"there is no evaluator '{name}'; choose from: {', '.join(EVALUATORS)}")
    from limbeck.data.source import open_source
    from limbeck.release.bundle import Generated, load
    from limbeck.release.files import in_a_bundle

    release = load(bundle)
    names = names or ["logreg" if isinstance(release, Generated) else "krr"]
    names.sort(key=lambda name: name != "krr")  # which refuses at once where there is no kernel
    if save is not None and in_a_bundle(save):
        raise UserError(f"{save} is inside a bundle, and scores are not private; save elsewhere")
    test = open_source(on, release.schema, "test")
    scores, note = _scores(names, release, test, _real(real, on, release.schema), fast, seed)
    found = {"bundle": str(bundle), "on": on, "scores": [score.to_json() for score in scores]}
    if save is not None:
        _save(save, {"note": NOT_PRIVATE, **found})
    if as_json:
        print_json(found)
    else:
        _show(scores, f"{bundle} on {test.name}", note)


def _scores(
    names: list[str], release: Any, test: "Source", real: "Source | None", fast: bool, seed: int
) -> "tuple[list[Score], str]":
    import importlib

    import numpy as np

    from limbeck.evaluate import metrics
    from limbeck.evaluate.task import Task

    scores: list[Score] = []
    with stages() as progress:
        task = Task(release, test, real, fast, seed, progress)
        for name in names:
            module, function = EVALUATORS[name].split(":")
            scores += getattr(importlib.import_module(module), function)(task)
        labels = task.test_rows.y
        known = labels if task.real_rows is None else task.real_rows.y
        commonest = int(np.bincount(known, minlength=task.classes).argmax())
        scores += metrics.of_the_majority(labels, commonest, task.classes)
    note = "" if real else "For what real records can do, give some to train on: --real FILE.\n"
    return scores, note


def _real(real: str | None, on: str, schema: "Schema") -> "Source | None":
    """What to train on for comparison: as asked for, or the train split of a named set."""
    from limbeck.data.named import NAMED
    from limbeck.data.source import open_source

    if real == "none":
        return None
    if real is not None:
        return open_source(real, schema, "train")
    name = on.partition(":")[0]
    return open_source(name, schema, "train") if name in NAMED else None


def _save(path: Path, found: dict[str, Any]) -> None:
    import json

    try:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})") from None


def _show(scores: "list[Score]", title: str, note: str) -> None:
    """One row a model, one column a metric; what is not of a classifier below it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows: dict[tuple[str, str], dict[str, Score]] = {}
    for score in scores:
        rows.setdefault((score.evaluator, score.trained_on), {})[score.metric] = score
    two_classes = any(score.metric == "roc_auc" for score in scores)
    shown = HEADINGS | (CURVES if two_classes else {"f1_macro": "F1"})
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("evaluator", "trained on", *shown.values()):
        justify: Any = "left" if heading in ("evaluator", "trained on") else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    for (evaluator, _), found in rows.items():
        if "accuracy" in found:
            values = [f"{found[m].value:.3f}" if m in found else "" for m in shown]
            table.add_row(evaluator, _trained_on(found["accuracy"]), *values)
    console = Console()
    console.print(table)
    for score in scores:
        if "accuracy" not in rows[score.evaluator, score.trained_on]:
            where = _trained_on(score)
            console.print(f"{score.evaluator}, {score.metric}, {where}: {score.value:.4g}")
    print(f"{note}{NOT_PRIVATE}")


HEADINGS = {"accuracy": "accuracy", "balanced_accuracy": "balanced"}
CURVES = {"roc_auc": "ROC-AUC", "average_precision": "av. prec."}


def _trained_on(score: "Score") -> str:
    if score.records is None:
        return "nothing"
    return f"{score.trained_on}, {score.records}"
