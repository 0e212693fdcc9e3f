"""Results that are kept: one flat record a run, so that a stopped reproduction goes on later."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limbeck.errors import UserError
from limbeck.release.files import write_text
from limbeck.reproduce.cells import Cell

Record = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """What the runs of a cell gave."""

    values: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.mean(self.values)


def key(cell: Cell, published: bool = False) -> Record:
    """What identifies a run but for its seed; cells of several tables may share it."""
    return {
        "method": cell.method,
        "data": cell.data,
        "per_class": cell.per_class,
        "epsilon": cell.epsilon,
        "setting": ";".join(f"{name}={value}" for name, value in cell.run_settings.items()),
        "evaluator": cell.evaluator,
        "metric": cell.metric,
        "published": published,
    }


def load(path: Path) -> list[Record]:
    """All records of a file; none if there is no such file yet."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        if not all("value" in record and "seed" in record for record in found):
            raise ValueError
    except (ValueError, TypeError):
        raise UserError(f"{path} does not hold results; choose another file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from None
    return list(found)


def save(path: Path, records: list[Record]) -> None:
    """Whole or not at all: a run may be stopped at any time."""
    write_text(path, json.dumps(records, indent=1) + "\n")


def seeds_done(records: list[Record], cell: Cell, published: bool = False) -> set[int]:
    """The seeds that need not be run again."""
    return {record["seed"] for record in _of(records, cell, published)}


def found(records: list[Record], cell: Cell, published: bool = False) -> Found | None:
    """What is known of a cell, if anything."""
    chosen = _of(records, cell, published)
    if not chosen:
        return None
    seconds = tuple(record["seconds"] for record in chosen if record.get("seconds"))
    return Found(tuple(record["value"] for record in chosen), seconds)


def _of(records: list[Record], cell: Cell, published: bool) -> list[Record]:
    wanted = key(cell, published)
    return [r for r in records if all(r.get(name) == value for name, value in wanted.items())]
