"""Scores that the owner adds: what `limbeck evaluate --json` printed, kept in a file."""

import dataclasses
import json
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from limbeck.errors import UserError


class Shown(NamedTuple):
    """One score of the file, as the page shows it."""

    evaluator: str
    metric: str
    value: float
    trained_on: str = "release"
    records: int | None = None


@dataclasses.dataclass(frozen=True)
class Scores:
    """Scores and the name of the real records that they were computed on."""

    on: str
    scores: tuple[Shown, ...]

    @property
    def names(self) -> list[str]:
        """What is known of each score, in the order of `rows`."""
        return [name.replace("_", " ") for name in Shown._fields]

    @property
    def rows(self) -> list[list[str]]:
        """The scores as text."""
        return [[_text(cell) for cell in row] for row in self.scores]


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)


def read(path: Path) -> Scores:
    """The scores in a file; keys that are not known are left out."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Scores(_name(found["on"]), tuple(_score(record) for record in found["scores"]))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); {_HOW}") from None
    except ValueError:
        raise UserError(f"{path}: not JSON; {_HOW}") from None
    except (LookupError, TypeError, AttributeError):
        raise UserError(f"{path}: does not hold scores; {_HOW}") from None


_HOW = "`limbeck evaluate BUNDLE --on SOURCE --json > scores.json` makes such a file"


def _name(on: str) -> str:
    """The set or the file, without the folders above it, which say something of a machine."""
    return PureWindowsPath(on).name


def _score(record: dict[str, Any]) -> Shown:
    score = Shown(**{name: value for name, value in record.items() if name in Shown._fields})
    if not isinstance(score.evaluator, str) or not isinstance(score.metric, str):
        raise TypeError("a score has the names of its evaluator and metric")
    if isinstance(score.value, bool) or not isinstance(score.value, int | float):
        raise TypeError("the value of a score is a number")
    return score._replace(value=float(score.value))
