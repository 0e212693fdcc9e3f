"""`limbeck methods`."""

import dataclasses

from limbeck.cli.console import AsJson, print_json
from limbeck.methods import METHODS


def methods(as_json: AsJson = False) -> None:
    """List the methods, their guarantees and their papers."""
    if as_json:
        rows = [{"method": name, **dataclasses.asdict(row)} for name, row in METHODS.items()]
        print_json({"methods": rows})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "what it does", "guarantee", "paper")
    for name, row in METHODS.items():
        table.add_row(name, row.summary, row.guarantee, row.paper)
    Console().print(table)
