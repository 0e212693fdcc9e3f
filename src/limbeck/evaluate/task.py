"""What evaluators work on: records to train on, and real ones to test on, all encoded alike."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.data.source import Source
from limbeck.evaluate.score import TrainedOn
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle

# The most real records that a model is trained on to see what is possible, and with `fast`.
MOST_REAL, MOST_REAL_FAST = 60_000, 10_000


class Rows(NamedTuple):
    """Encoded records, [0, 1] for real ones, and their classes by position."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A release, real records to test on, and real ones to compare with.

    `fast` trains smaller networks, and on fewer real records. The seed is that of the models.
    """

    bundle: Bundle
    test: Source
    real: Source | None = None
    fast: bool = False
    seed: int = 0
    progress: Progress = silent

    @functools.cached_property
    def release_rows(self) -> Rows:
        """The points, each with the class of its largest weight."""
        return Rows(self.bundle.points, self.bundle.y_soft.argmax(axis=1))

    @functools.cached_property
    def test_rows(self) -> Rows:
        """All of them."""
        return read(self.test, self.progress)

    @functools.cached_property
    def real_rows(self) -> Rows | None:
        """Real records to train on; if there are very many, some drawn at random."""
        if self.real is None:
            return None
        rows = read(self.real, self.progress)
        most = MOST_REAL_FAST if self.fast else MOST_REAL
        if len(rows.y) <= most:
            return rows
        chosen = np.random.default_rng(self.seed).permutation(len(rows.y))[:most]
        return Rows(rows.x[chosen], rows.y[chosen])

    @property
    def sets(self) -> list[tuple[TrainedOn, Rows]]:
        """What models are trained on: the release, and real records if there are any."""
        release: list[tuple[TrainedOn, Rows]] = [("release", self.release_rows)]
        return release if self.real_rows is None else [*release, ("real", self.real_rows)]

    @property
    def classes(self) -> int:
        """How many the schema declares."""
        return len(self.bundle.schema.classes)


def read(source: Source, progress: Progress = silent) -> Rows:
    """All records of a source."""
    parts, done = [], 0
    for batch in source.batches():
        progress("read", done, 0)
        parts.append(batch)
        done += len(batch[1])
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Rows(x, y)
