"""The form in which scores are kept everywhere: one flat record a score."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Score:
    """One number that an evaluator found."""

    evaluator: str
    metric: str
    value: float

    def to_json(self) -> dict[str, Any]:
        """As a plain record."""
        return dataclasses.asdict(self)
