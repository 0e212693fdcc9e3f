"""What was drawn: an append-only list of events, and the plan that it may not exceed."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal, NoReturn

import dp_accounting


class BudgetSpentError(RuntimeError):
    """A measurement was asked for that the plan does not hold, or no longer holds."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """`draws` independent draws of noise of the same kind.

    `noise_multiplier` is the standard deviation of Gaussian noise over the largest L2 norm that one
    record can contribute, or the scale of Laplace noise over the largest L1 norm; `None` says that
    nothing was noised and there is no privacy at all.
    """

    purpose: str
    draws: int
    noise_multiplier: float | None
    sampling_probability: float = 1.0
    mechanism: Literal["gaussian", "laplace"] = "gaussian"

    @property
    def event(self) -> dp_accounting.DpEvent:
        """The entry as dp-accounting understands it, where a record comes or goes."""
        if self.noise_multiplier is None:
            return dp_accounting.NonPrivateDpEvent()
        event: dp_accounting.DpEvent = dp_accounting.GaussianDpEvent(self.noise_multiplier)
        if self.mechanism == "laplace":
            event = dp_accounting.LaplaceDpEvent(self.noise_multiplier)
        if self.sampling_probability < 1:
            event = dp_accounting.PoissonSampledDpEvent(self.sampling_probability, event)
        return dp_accounting.SelfComposedDpEvent(event, self.draws)


class NoCopy:
    """What may exist once only: a copy of a ledger, or of private rows, would be spent twice."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is neither copied nor pickled")


class Ledger(NoCopy):
    """Every draw of noise is charged here before it is made.

    The plan is fixed before the first private row is read, and calibrated to the budget as a
    whole. `charge` hands out the noise multiplier of the plan, so that what is drawn and what is
    recorded cannot differ, and refuses what was not planned.

    Examples
    --------
    >>> plan = [Entry(purpose="count", draws=1, noise_multiplier=3.7)]
    >>> ledger = Ledger(plan)
    >>> ledger.charge("count").noise_multiplier
    3.7
    >>> ledger.draws
    1
    """

    def __init__(self, plan: Iterable[Entry]) -> None:
        self._plan: dict[str, Entry] = {}
        for entry in plan:
            if entry.purpose in self._plan:
                raise ValueError(f"'{entry.purpose}' is planned twice")
            self._plan[entry.purpose] = entry
        self._spent: dict[str, int] = {}

    def planned(self, purpose: str) -> Entry:
        """What the plan says of a measurement."""
        if purpose not in self._plan:
            raise BudgetSpentError(f"a measurement of '{purpose}' was not planned")
        return self._plan[purpose]

    def charge(self, purpose: str) -> Entry:
        """Record one draw of a planned measurement, and return what was planned."""
        planned, spent = self.planned(purpose), self._spent.get(purpose, 0)
        if spent >= planned.draws:
            raise BudgetSpentError(f"all {planned.draws} planned draws for '{purpose}' are spent")
        self._spent[purpose] = spent + 1
        return planned

    @property
    def plan(self) -> tuple[Entry, ...]:
        """What may be drawn at most."""
        return tuple(self._plan.values())

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What has been drawn, in the order of first draw."""
        return tuple(
            dataclasses.replace(self._plan[purpose], draws=draws)
            for purpose, draws in self._spent.items()
        )

    @property
    def draws(self) -> int:
        """How many draws have been charged."""
        return sum(self._spent.values())


def to_json(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The entries as plain records, as they stand in a bundle's release.json."""
    return [dataclasses.asdict(entry) for entry in entries]


def from_json(records: Iterable[dict[str, Any]]) -> tuple[Entry, ...]:
    """The inverse of `to_json`."""
    return tuple(Entry(**record) for record in records)
