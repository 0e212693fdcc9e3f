"""The form in which scores are kept everywhere: one flat record a score."""

import dataclasses
from typing import Any, Literal

TrainedOn = Literal["release", "real", "majority"]


@dataclasses.dataclass(frozen=True)
class Score:
    """One number that an evaluator found.

    Attributes
    ----------
    trained_on : the release; real records, which is what the release can hope for at best; or
        nothing but the commonest class, which is the least to beat.
    records : how many records the model was trained on, where it was trained on any.
    """

    evaluator: str
    metric: str
    value: float
    trained_on: TrainedOn = "release"
    records: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As a plain record."""
        return dataclasses.asdict(self)
