"""The cells of the papers' tables, read from `papers/PAPER/tableN.csv`."""

import csv
import dataclasses
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from limbeck.data.parse import did_you_mean
from limbeck.errors import UserError

OURS = "readout"  # our own method, which stands beside those of the papers
# And our own addition to DP-NTK, which stands beside the best of this table.
LABELLED, BESIDE_ALL = "dp-ntk-readout", "dp-ntk/table2"
# The paper of this table changes the test rows, so that each cell is there twice: as the paper has
# it, and on test rows that nobody has touched.
TWICE = "dp-ntk/table4"
THEIR_PROTOCOL, OUR_PROTOCOL = "protocol=paper", "protocol=ours"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of one table.

    Attributes
    ----------
    setting : what else distinguishes it, as `corrupted=5` or `width=800`; several by semicolons.
    theirs, spread : as printed, accuracies in percent or not as the paper has them. For our own
        method, which the paper does not know, the best of the cell.
    printed : whether the paper has this cell; of the others only `theirs` is from there.
    """

    table: str
    method: str
    data: str
    per_class: int | None
    epsilon: float | None
    evaluator: str
    metric: str
    setting: str
    theirs: float
    spread: str = ""
    printed: bool = True

    @property
    def label(self) -> str:
        """Such as `mnist:1:eps1`."""
        parts = [self.data]
        if self.per_class is not None:
            parts.append(str(self.per_class))
        if self.epsilon is not None:
            parts.append(f"eps{self.epsilon:g}")
        return ":".join([*parts, *filter(None, self.setting.split(";"))])

    @property
    def percent(self) -> bool:
        """Whether the paper counts in percent."""
        return self.theirs > 1

    @property
    def run_settings(self) -> dict[str, str]:
        """The setting by its parts, without the half of the table that it stands in."""
        pairs = [part.split("=") for part in filter(None, self.setting.split(";"))]
        return {name: value for name, value in pairs if name != "part"}

    def matches(self, asked: str) -> bool:
        """Whether all parts of what was asked for, such as `mnist:eps1`, are parts of the label."""
        return set(asked.split(":")) <= set(self.label.split(":"))


def tables() -> list[str]:
    """Their names: `dp-kip/table1` and so on."""
    return sorted(
        f"{paper.name.replace('_', '-')}/{file.name.removesuffix('.csv')}"
        for paper in _papers().iterdir()
        if paper.is_dir()
        for file in paper.iterdir()
        if file.name.startswith("table")
    )


def cells_of(table: str) -> list[Cell]:
    """All of a table, in its order; then those of our own method, or by our own protocol."""
    if table not in tables():
        hint = did_you_mean(table, tables())
        raise UserError(f"there is no table '{table}'{hint}; `limbeck reproduce` lists them")
    paper, name = table.split("/")
    text = (_papers() / paper.replace("-", "_") / f"{name}.csv").read_text(encoding="utf-8")
    found = [_cell(table, row) for row in csv.DictReader(text.splitlines())]
    if table == TWICE:
        beside = _by_protocol(found, OUR_PROTOCOL)
        found = list(_by_protocol(found, THEIR_PROTOCOL))
    else:
        beside = _ours(found)
    return [*found, *(dataclasses.replace(cell, printed=False) for cell in beside)]


def published_settings(cell: Cell) -> dict[str, Any]:
    """What the appendix of the paper sets for this cell; empty where it says nothing.

    Numbers, and the name of an architecture.
    """
    paper = cell.table.split("/")[0].replace("-", "_")
    text = (_papers() / paper / "settings.csv").read_text(encoding="utf-8")
    key = cell.method, cell.data, cell.per_class, cell.epsilon
    return {
        row["setting"]: row["value"] if row["setting"] == "architecture" else float(row["value"])
        for row in csv.DictReader(text.splitlines())
        if (row["method"], row["data"], _whole(row["per_class"]), _real(row["epsilon"])) == key
    }


def _papers() -> Traversable:
    return resources.files("limbeck.reproduce") / "papers"


def _cell(table: str, row: dict[str, str]) -> Cell:
    return Cell(
        table=table,
        method=row["method"],
        data=row["data"],
        per_class=_whole(row["per_class"]),
        epsilon=_real(row["epsilon"]),
        evaluator=row["evaluator"],
        metric=row["metric"],
        setting=row["setting"],
        theirs=float(row["value"]),
        spread=row["spread"],
    )


def _ours(cells: Iterable[Cell]) -> Iterator[Cell]:
    """A cell of our own for each of DP-KIP without further settings, and of `BESIDE_ALL`."""
    best: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        where = cell.data, cell.per_class, cell.epsilon, cell.setting, cell.evaluator
        of_kip = cell.method.startswith("dp-kip") and not cell.run_settings
        if of_kip or cell.table == BESIDE_ALL:
            best[where] = max(best.get(where, cell), cell, key=lambda c: c.theirs)
    for cell in best.values():
        yield dataclasses.replace(cell, method=LABELLED if cell.table == BESIDE_ALL else OURS)


def _by_protocol(cells: Iterable[Cell], setting: str) -> Iterator[Cell]:
    for cell in cells:
        yield dataclasses.replace(cell, setting=setting)


def _whole(text: str) -> int | None:
    return int(text) if text else None


def _real(text: str) -> float | None:
    return float(text) if text else None
