"""`limbeck distill` and `limbeck generate`: run a method and write its bundle."""

import sys
from typing import Literal

from limbeck.cli.console import peak_memory_mb, print_json, stages
from limbeck.cli.options import Request
from limbeck.data.named import NAMED
from limbeck.data.private import open_private
from limbeck.errors import UserError
from limbeck.method import Method, find
from limbeck.release.files import check_destination


def distill(request: Request) -> None:
    """Write a bundle of a few points."""
    _run(request, "distill")


def generate(request: Request) -> None:
    """Write a bundle of generated records and their generator."""
    _run(request, "generate")


def _run(request: Request, command: Literal["distill", "generate"]) -> None:
    """Refuse what cannot be done before any row is read; then fit, save and report."""
    chosen = find(request.method)
    _check(chosen, request, command)
    budget = request.budget(chosen)
    private = open_private(
        request.source, request.schema, accept_drafted_schema=request.accept_drafted_schema
    )
    check_destination(request.output, request.overwrite)
    method = request.configured(chosen)
    if sys.stderr.isatty():
        print(f"Expect {method.plan(private.schema, budget).needs}.", file=sys.stderr)
    with stages() as progress:
        bundle = method.fit(private, budget, seed=request.seed, progress=progress)
        progress("write", 0, 0)
        bundle.save(request.output, overwrite=request.overwrite)
    records = len(bundle.points)
    if request.as_json:
        print_json(
            {
                "bundle": str(request.output),
                "method": method.name,
                "epsilon": None if budget is None else bundle.epsilon,
                "delta": None if budget is None else budget.delta,
                "records": records,
                "seconds": progress.seconds,
                "peak_memory_mb": peak_memory_mb(),
            }
        )
        return
    print(bundle.statement())
    seconds = sum(progress.seconds.values())
    noun = "points" if command == "distill" else "records"
    print(f"{records} {noun} by {method.name} in {seconds:.0f} s: {request.output}/")
    print("\n".join(_next_steps(request, command)))


def _check(method: type[Method], request: Request, command: str) -> None:
    """Refuse a method of the other command, and one whose lack of privacy was not accepted."""
    if method.command != command:
        raise UserError(
            f"{method.name} is a method of `limbeck {method.command}`, not of `limbeck {command}`"
        )
    if method.private and request.not_private:
        raise UserError(f"{method.name} is private; leave out --not-private")
    if not method.private and not request.not_private:
        raise UserError(
            f"{method.name} gives no privacy at all; add --not-private if that is intended"
        )


def _next_steps(request: Request, command: str) -> list[str]:
    """Commands that use the bundle."""
    name = request.source.partition(":")[0]
    test = f"{name}:test" if name in NAMED else "TEST_FILE"
    models = "" if command == "distill" else " --with logreg,mlp"
    steps = [
        f"To see them: limbeck report {request.output}",
        f"To score them: limbeck evaluate {request.output} --on {test}{models}",
    ]
    if command == "generate":
        steps.append(f"To draw more: limbeck sample {request.output} -n 100000 -o more.npz")
    return steps
