"""What all commands share: printing, progress, measuring themselves."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]

STAGES = {
    "read": "Reading the records",
    "features": "Computing features",
    "learn": "Learning a readout",
    "calibrate": "Calibrating the noise",
    "distil": "Distilling",
    "score": "Scoring",
    "real": "Comparing with real records",
    "train": "Training models",
    "write": "Writing",
}


def print_json(found: dict[str, Any]) -> None:
    """One object on standard output."""
    print(json.dumps(found))


def peak_memory_mb() -> float | None:
    """The most memory that this process has held; None where the system does not tell."""
    try:  # getrusage would also count the process that started this one
        lines = Path("/proc/self/status").read_text().splitlines()
        kilobytes = int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:  # Windows
            return None
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kilobytes = largest // 1024 if sys.platform == "darwin" else largest
    return round(kilobytes / 1024, 1)


class Stopped(Exception):  # noqa: N818
    """The user pressed Ctrl-C; the text says where things stand."""


class Stages:
    """A progress callback that shows a bar for each stage and keeps the time that it took."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None
        self._stage: str | None = None
        self._since = time.monotonic()
        self.seconds: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """See `limbeck.progress.Progress`."""
        if stage != self._stage:
            self.finish()
            self._stage, self._since = stage, time.monotonic()
            self._task = self._bar.add_task(STAGES.get(stage, stage), total=total or None)
        self._bar.update(self._task, completed=done)

    def finish(self) -> None:
        """End the current stage."""
        if self._stage is not None:
            spent = time.monotonic() - self._since
            self.seconds[self._stage] = round(self.seconds.get(self._stage, 0.0) + spent, 3)
            self._bar.remove_task(self._task)
            self._stage = None


@contextmanager
def stages() -> Iterator[Stages]:
    """Bars on standard error, with the time left; nothing where that is not a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),  # rich's own answer would heed FORCE_COLOR
    ) as bar:
        tracked = Stages(bar)
        try:
            yield tracked
        except KeyboardInterrupt as stop:
            raise Stopped(str(stop) or "interrupted; nothing was written") from None
        tracked.finish()
