"""What `distill` and `generate` share: budget, configuration, the run, and what is printed."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from limbeck.cli.console import peak_memory_mb, print_json, stages
from limbeck.errors import UserError

METHOD, BUDGET, VOTING = "Method", "Budget", "Teachers and their votes (g-pate)"

Source = Annotated[
    str, typer.Argument(help="A named set (digits, mnist, adult, ...) or a file or folder.")
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="The public description (TOML) of a file or folder.")
]
Output = Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")]
Epsilon = Annotated[
    float | None,
    typer.Option(
        help="How much privacy may be spent: 1 is strong, 10 weak.", rich_help_panel=BUDGET
    ),
]
Delta = Annotated[
    float,
    typer.Option(help="Well below one over the number of records.", rich_help_panel=BUDGET),
]
Neighbours = Annotated[str, typer.Option(help="add-remove or replace.", rich_help_panel=BUDGET)]
AcceptDrafted = Annotated[
    bool,
    typer.Option(
        "--accept-drafted-schema",
        help="Use a schema drafted from the private rows; the statement will say so.",
        rich_help_panel=BUDGET,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="For tests and papers: the bundle is not for release."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the bundle.")]

Command = Literal["distill", "generate"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user said on the command line, but for the settings of the method."""

    source: str
    schema: Path | None
    output: Path
    method: str
    epsilon: float | None
    delta: float
    adjacency: str
    not_private: bool
    accept_drafted_schema: bool
    seed: int | None
    overwrite: bool
    as_json: bool


def make(command: Command, asked: Asked, **settings: Any) -> None:
    """Run the method and write the bundle; refuse what cannot be before any work is done."""
    budget = _budget(command, asked)
    from limbeck.data.private import open_private

    private = open_private(
        asked.source, asked.schema, accept_drafted_schema=asked.accept_drafted_schema
    )
    from limbeck.release.files import check_destination

    check_destination(asked.output, asked.overwrite)
    config = _configured(asked.method, **settings)
    if hasattr(config, "needs"):
        needs = config.needs(private.schema, budget)
        needs.check()
        print(f"limbeck: {needs}", file=sys.stderr)
    with stages() as progress:
        bundle = config.fit(private, budget, seed=asked.seed, progress=progress)
        progress("write", 0, 0)
        bundle.save(asked.output, overwrite=asked.overwrite)
    if asked.as_json:
        print_json(
            {
                "bundle": str(asked.output),
                "method": asked.method,
                "epsilon": None if budget is None else bundle.epsilon,
                "delta": None if budget is None else budget.delta,
                "records": len(bundle.points),
                "seconds": progress.seconds,
                "peak_memory_mb": peak_memory_mb(),
            }
        )
    else:
        print(bundle.statement())
        _tell(command, asked, len(bundle.points), sum(progress.seconds.values()))


def _tell(command: Command, asked: Asked, records: int, seconds: float) -> None:
    """What was made, and what to do with it."""
    noun, models = ("points", "") if command == "distill" else ("records", " --with logreg,mlp")
    print(f"{records} {noun} by {asked.method} in {seconds:.0f} s: {asked.output}/")
    print(f"Look at them with: limbeck report {asked.output}")
    test = _test_split(asked.source)
    print(f"Score them with: limbeck evaluate {asked.output} --on {test}{models}")
    if command == "generate":
        print(f"Draw more with: limbeck sample {asked.output} -n 100000 -o more.npz")


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


def _budget(command: Command, asked: Asked) -> Any:
    """The budget, or None where the user says that there is to be none."""
    from limbeck.methods import find
    from limbeck.privacy.budget import Adjacency, Budget

    method, epsilon, not_private = asked.method, asked.epsilon, asked.not_private
    if find(method).command != command:
        raise UserError(f"{method} is a method of `limbeck {find(method).command}`; use that")
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
        neighbours = Adjacency(asked.adjacency)
    except ValueError:
        raise UserError(f"--adjacency is add-remove or replace, not '{asked.adjacency}'") from None
    return Budget(epsilon=epsilon, delta=asked.delta, adjacency=neighbours)


def _test_split(source: str) -> str:
    from limbeck.data.named import NAMED

    name = source.partition(":")[0]
    return f"{name}:test" if name in NAMED else "TEST_FILE"


def number_or_word(given: str | None) -> float | str | None:
    """For options that are either."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given
