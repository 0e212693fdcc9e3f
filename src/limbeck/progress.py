"""How long work tells how far it is."""

from collections.abc import Callable

# progress(stage, done, total); total 0 where it is not known.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""
