"""`limbeck reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.console import AsJson, print_json, stages
from limbeck.errors import UserError

if TYPE_CHECKING:
    from limbeck.reproduce.cells import Cell
    from limbeck.reproduce.results import Record


def reproduce(
    table: Annotated[
        str | None, typer.Argument(help="Such as dp-kip/table2; without it, all are listed.")
    ] = None,
    cells: Annotated[
        str,
        typer.Option(
            help="Which cells, separated by commas: mnist:1:eps1, or parts as mnist:eps1. All "
            "that can be run, if none are named."
        ),
    ] = "",
    methods: Annotated[
        str, typer.Option(help="Which methods, separated by commas; all that we have, if none.")
    ] = "",
    seeds: Annotated[str, typer.Option(help="Separated by commas.")] = "0,1,2",
    published: Annotated[
        bool, typer.Option("--published", help="With the settings of the paper's appendix.")
    ] = False,
    store: Annotated[
        Path, typer.Option("--results", help="Where results are kept; what is there is not rerun.")
    ] = Path("reproductions.json"),
    page: Annotated[
        Path | None, typer.Option(help="Write the page of all results to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run cells of the papers' tables and put theirs beside ours."""
    from limbeck.reproduce import results

    records = results.load(store)
    if table is not None:
        chosen = _chosen(table, _split(cells), _split(methods))
        _run(chosen, _seeds(seeds), published, store, records)
        _show(chosen, records, published, as_json)
    elif page is None:
        _list(as_json)
    if page is not None:
        _write(page, records)


def _chosen(table: str, cells: list[str], methods: list[str]) -> "list[Cell]":
    """The cells asked for, each of which can be run."""
    from limbeck.reproduce.cells import cells_of
    from limbeck.reproduce.runs import runnable

    every = cells_of(table)
    for asked in cells:
        if not any(cell.matches(asked) for cell in every):
            labels = ", ".join(dict.fromkeys(cell.label for cell in every))
            raise UserError(f"{table} has no cell '{asked}'; it has: {labels}")
    known = dict.fromkeys(cell.method for cell in every)
    for method in methods:
        if method not in known:
            raise UserError(f"{table} has no method '{method}'; it has: {', '.join(known)}")
    chosen = [
        cell
        for cell in every
        if (not cells or any(cell.matches(asked) for asked in cells))
        and (not methods or cell.method in methods)
        and runnable(cell)
    ]
    if not chosen:
        raise UserError(
            f"{table}: none of these cells can be run here; we lack the method or the data"
        )
    return chosen


def _run(
    chosen: "list[Cell]", seeds: list[int], published: bool, store: Path, records: "list[Record]"
) -> None:
    """What is missing; each result is kept as soon as it is there.

    Cells that score one release follow each other, so that it is made once.
    """
    from limbeck.reproduce import results, runs

    releases = list(dict.fromkeys(map(runs.release, chosen)))
    in_turn = sorted(chosen, key=lambda cell: releases.index(runs.release(cell)))
    with stages() as progress:
        for seed in seeds:
            for cell in in_turn:
                if seed in results.seeds_done(records, cell, published):
                    continue
                found = runs.run(cell, seed, published, progress)
                records.append({**results.key(cell, published), "seed": seed, **found})
                results.save(store, records)


def _show(chosen: "list[Cell]", records: "list[Record]", published: bool, as_json: bool) -> None:
    from limbeck.reproduce import results
    from limbeck.reproduce.page import row

    if as_json:
        rows = []
        for cell in chosen:
            found = results.found(records, cell, published)
            ours = {"ours": found.values, "seconds": found.seconds} if found else {}
            rows.append({"cell": cell.label, "method": cell.method, "theirs": cell.theirs, **ours})
        print_json({"table": chosen[0].table, "cells": rows})
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table("cell", "method", "paper", "here", "difference", "seconds")
    for cell in chosen:
        shown.add_row(*row(cell, records, published))
    Console().print(shown)


def _list(as_json: bool) -> None:
    from limbeck.reproduce.cells import cells_of, tables
    from limbeck.reproduce.runs import runnable

    found = [
        {"table": table, "cells": len(cells), "runnable": sum(map(runnable, cells))}
        for table in tables()
        for cells in [cells_of(table)]
    ]
    if as_json:
        print_json({"tables": found})
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table("table", "cells", "of them can be run here")
    for entry in found:
        shown.add_row(*map(str, entry.values()))
    Console().print(shown)


def _write(path: Path, records: "list[Record]") -> None:
    from limbeck.reproduce.page import page

    try:
        path.write_text(page(records), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror})") from None


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _seeds(text: str) -> list[int]:
    try:
        return [int(part) for part in _split(text)]
    except ValueError:
        raise UserError(
            f"--seeds {text}: whole numbers, separated by commas, as in 0,1,2"
        ) from None
