"""The public plan of a run: what is measured, and what memory and time it takes."""

import dataclasses
import os

from limbeck.errors import UserError
from limbeck.privacy.accounting import calibrate
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Entry


@dataclasses.dataclass(frozen=True, kw_only=True)
class Needs:
    """Rough estimates of memory and time: a fixed part, and a part for each record.

    The number of records may be private, so the two parts are never added up here.
    """

    memory: float = 3e8
    seconds: float = 5.0
    memory_per_record: float = 0.0
    seconds_per_record: float = 0.0
    advice: str = ""

    def check(self) -> None:
        """Refuse a run whose fixed part does not fit into memory."""
        available = available_memory()
        if self.memory > available:
            raise UserError(
                f"this run needs about {size(self.memory)} of memory and {size(available)} are "
                f"free{'; ' + self.advice if self.advice else ''}"
            )

    def __str__(self) -> str:
        million = 1e6
        return (
            f"about {size(self.memory)} of memory and {duration(self.seconds)}, and for each "
            f"million records {size(million * self.memory_per_record)} and "
            f"{duration(million * self.seconds_per_record)} more"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What a method will measure.

    Attributes
    ----------
    measurements : draws of Gaussian noise that share the budget.
    settled : draws whose noise is given, beside which the others are calibrated; for a baseline
        without privacy, measurements without noise.
    needs : what memory and time to expect.
    """

    measurements: tuple[Measurement, ...] = ()
    settled: tuple[Entry, ...] = ()
    needs: Needs = Needs()

    def calibrated(self, budget: Budget | None) -> tuple[Entry, ...]:
        """The plan with the least noise that meets the budget."""
        if budget is None:
            return self.settled
        return calibrate(self.measurements, budget, self.settled)


def available_memory() -> float:
    """Free memory in bytes; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def size(count: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> size(2.5e9), size(3e6)
    ('2.5 GB', '3 MB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"


def duration(seconds: float) -> str:
    """Seconds in words.

    Examples
    --------
    >>> duration(300), duration(20)
    ('5 minutes', '20 seconds')
    """
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{max(1, round(seconds))} seconds"
