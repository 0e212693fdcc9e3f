"""The page of all reproductions, made from the stored results."""

import functools
import statistics
import tomllib
from importlib import resources

from limbeck.reproduce import results
from limbeck.reproduce.cells import OUR_PROTOCOL, Cell, cells_of, tables
from limbeck.reproduce.results import Found, Record
from limbeck.reproduce.runs import METHODS, REAL, runnable

# Differences that count as the same, in the unit of the paper.
SAME_PERCENT, SAME = 1.0, 0.01


def page(records: list[Record]) -> str:
    """Markdown."""
    remarks = tomllib.loads(_remarks())
    parts = [remarks["opening"].strip(), _summary(records)]
    for table in tables():
        parts.append(_table(table, records, remarks["tables"].get(table, {})))
    return "\n\n".join(parts) + "\n"


def verdict(cell: Cell, ours: Found) -> str:
    """In a word: above, the same, or below what the paper has."""
    same = SAME_PERCENT if cell.percent else SAME
    gap = ours.mean - cell.theirs
    return "above" if gap > same else "below" if gap < -same else "same"


def row(cell: Cell, records: list[Record], published: bool = False) -> list[str]:
    """The cells of a row of a table: label, method, theirs, ours, difference, seconds.

    Numbers by another protocol than theirs have no difference from theirs.
    """
    digits = 1 if cell.percent else 3
    theirs = f"{cell.theirs:g}" + (f" ± {cell.spread}" if cell.spread else "")
    ours = results.found(records, cell, published)
    head = [_named(cell), cell.method, theirs]
    if ours is None:
        return [*head, "not run", "", ""]
    spread = ""
    if len(ours.values) > 1:
        spread = f" ({min(ours.values):.{digits}f} to {max(ours.values):.{digits}f})"
    seconds = f"{statistics.median(ours.seconds):.0f}" if ours.seconds else ""
    return [
        *head,
        f"{ours.mean:.{digits}f}{spread}",
        "" if cell.setting == OUR_PROTOCOL else f"{ours.mean - cell.theirs:+.{digits}f}",
        seconds,
    ]


def _named(cell: Cell) -> str:
    """The label, and how it is scored where that is not the same in all of the table."""
    evaluator = cell.evaluator if _several_evaluators(cell.table) else ""
    metric = "" if cell.metric == "accuracy" else cell.metric
    return ", ".join(filter(None, (cell.label, evaluator, metric)))


@functools.cache
def _several_evaluators(table: str) -> bool:
    return len({cell.evaluator for cell in cells_of(table)}) > 1


def _summary(records: list[Record]) -> str:
    lines = [
        "| | above | same | below | not run | of methods or data that are not here |",
        "|---|---|---|---|---|---|",
    ]
    for table in tables():
        counts = dict.fromkeys(("above", "same", "below", "not run", "not here"), 0)
        for cell in cells_of(table):
            if not cell.printed:
                continue
            ours = results.found(records, cell)
            if not runnable(cell) and ours is None:
                counts["not here"] += 1
            else:
                counts[verdict(cell, ours) if ours else "not run"] += 1
        lines.append(f"| [{table}](#{_anchor(table)}) | {' | '.join(map(str, counts.values()))} |")
    return "\n".join([*lines, "", *_below(records)])


def _below(records: list[Record]) -> list[str]:
    """What we could not reach, first of all."""
    found = []
    for table in tables():
        for cell in cells_of(table):
            ours = results.found(records, cell)
            if cell.setting == OUR_PROTOCOL:
                continue
            if ours and verdict(cell, ours) == "below":
                digits = 1 if cell.percent else 3
                numbers = f"{ours.mean:.{digits}f}, paper {cell.theirs:g}"
                found.append(f"- {table} {_named(cell)}, {cell.method}: {numbers}")
    return (
        ["What we have not reached:", "", *found] if found else ["Nothing that was run is below."]
    )


def _table(table: str, records: list[Record], remarks: dict[str, str]) -> str:
    cells = cells_of(table)
    shown = [c for c in cells if runnable(c) or results.found(records, c)]
    lines = [f"## {table}", "", remarks.get("what", "").strip(), ""]
    if shown:
        lines += [
            "| cell | method | paper | here | difference | seconds |",
            "|---|---|---|---|---|---|",
            *(f"| {' | '.join(row(cell, records))} |" for cell in shown),
            "",
        ]
    others = sorted({c.method for c in cells} - set(METHODS) - {REAL})
    if others:
        lines += [f"Theirs only: {', '.join(others)}.", ""]
    lines.append(remarks.get("remarks", "").strip())
    return "\n".join(lines).strip()


def _anchor(table: str) -> str:
    return table.replace("/", "")


def _remarks() -> str:
    return (resources.files("limbeck.reproduce") / "papers" / "remarks.toml").read_text("utf-8")
