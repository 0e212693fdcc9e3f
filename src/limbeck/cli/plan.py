"""`limbeck plan`: what a run will measure and need, from public information alone."""

from collections.abc import Iterable
from typing import TypedDict

from rich.console import Console
from rich.table import Table

from limbeck.cli.console import print_json
from limbeck.cli.options import Request
from limbeck.data.named import NAMED, schema_of
from limbeck.data.schema import Schema
from limbeck.data.source import open_source
from limbeck.errors import UserError
from limbeck.method import find
from limbeck.privacy import accounting
from limbeck.privacy.ledger import Entry
from limbeck.privacy.plan import Needs, Plan, duration, size


class Row(TypedDict):
    """A measurement of the plan, as it is printed."""

    purpose: str
    mechanism: str
    draws: int
    sampling_probability: float
    share: float | None
    noise_multiplier: float | None


def plan(request: Request) -> None:
    """Print the measurements with their noise, what they spend, and what memory and time to expect.

    No record is read.
    """
    schema = _schema(request)
    chosen = find(request.method)
    budget = request.budget(chosen)
    planned = request.configured(chosen).plan(schema, budget)
    entries = planned.calibrated(budget)
    rows = _rows(planned, entries)
    spent = budget and accounting.epsilon(entries, budget.delta, budget.adjacency)
    if request.as_json:
        print_json(
            {
                "method": chosen.name,
                "epsilon": spent,
                "delta": budget and budget.delta,
                "adjacency": budget and budget.adjacency.value,
                "measurements": rows,
                "needs": _needs(planned.needs, schema.public_rows),
            }
        )
        return
    Console(markup=False, highlight=False).print(_table(rows))
    if budget is None:
        print(f"NOT PRIVATE: {chosen.name} adds no noise and gives no guarantee.")
    else:
        print(
            f"{chosen.name} will spend ε = {spent:.5f} at δ = {budget.delta:g} "
            f"({budget.adjacency.value}; budget: ε = {budget.epsilon:g})."
        )
    print("\n".join(_expectations(planned.needs, schema.public_rows)))


def _schema(request: Request) -> Schema:
    """The public schema; a named set has its own, for which no file is opened."""
    name, _, split = request.source.partition(":")
    if request.schema is None and name in NAMED:
        return schema_of(name, split or "train")
    return open_source(request.source, request.schema).schema


def _rows(planned: Plan, entries: Iterable[Entry]) -> list[Row]:
    total = sum(measurement.share for measurement in planned.measurements)
    shares = {m.purpose: m.share / total for m in planned.measurements}
    return [
        {
            "purpose": entry.purpose,
            "mechanism": "none" if entry.noise_multiplier is None else entry.mechanism,
            "draws": entry.draws,
            "sampling_probability": entry.sampling_probability,
            "share": shares.get(entry.purpose),
            "noise_multiplier": entry.noise_multiplier,
        }
        for entry in entries
    ]


def _table(rows: list[Row]) -> Table:
    table = Table("purpose", "mechanism")
    for heading in (
        "draws",
        "sampling probability",
        "share of the noise budget",
        "noise multiplier",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        share, noise = row["share"], row["noise_multiplier"]
        table.add_row(
            row["purpose"],
            row["mechanism"],
            str(row["draws"]),
            f"{row['sampling_probability']:g}",
            "fixed" if share is None else f"{share:.1%}",
            "none" if noise is None else f"{noise:.4g}",
        )
    return table


def _expectations(needs: Needs, rows: int | None) -> list[str]:
    """Sentences on memory and time, and on too little memory."""
    lines = [f"Expect {needs}."]
    if rows is not None:
        memory, seconds = _total(needs, rows)
        lines.append(f"With {rows} records: {size(memory)} and {duration(seconds)} in all.")
    try:
        needs.check()
    except UserError as error:
        lines.append(f"It would be refused here: {error}.")
    return lines


def _total(needs: Needs, rows: int) -> tuple[float, float]:
    return (
        needs.memory + rows * needs.memory_per_record,
        needs.seconds + rows * needs.seconds_per_record,
    )


def _needs(needs: Needs, rows: int | None) -> dict[str, float | int]:
    """Estimates in megabytes and seconds; totals where the number of records is public."""
    fixed = {
        "memory_mb": needs.memory / 1e6,
        "seconds": needs.seconds,
        "memory_mb_per_million_records": needs.memory_per_record,
        "seconds_per_million_records": 1e6 * needs.seconds_per_record,
    }
    if rows is None:
        return fixed
    memory, seconds = _total(needs, rows)
    return {**fixed, "records": rows, "total_memory_mb": memory / 1e6, "total_seconds": seconds}
