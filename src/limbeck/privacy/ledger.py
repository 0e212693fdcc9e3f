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


class Unique:
    """What may exist once only: a copy of a ledger, or of private rows, would be spent twice."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is neither copied nor pickled")


class Ledger(Unique):
    """Every draw of noise is charged here before it is made.

    The plan is fixed before the first private row is read, and calibrated to the budget as a
    whole. `charge` hands out the noise multiplier of the plan, so that what is drawn and what is
    recorded cannot differ, and refuses what was not planned.

    Examples
    --------
    >>> plan = [Entry(purpose="count", draws=1, noise_multiplier=3.7)]
    >>> ledger = Ledger(plan)
    >>> ledger.charge("count", sampling_probability=1.0)
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

    def charge(
        self,
        purpose: str,
        *,
        sampling_probability: float,
        mechanism: Literal["gaussian", "laplace"] = "gaussian",
    ) -> float:
        """Record one draw; its noise multiplier."""
        planned = self._plan.get(purpose)
        if planned is None or planned.noise_multiplier is None or planned.mechanism != mechanism:
            raise BudgetSpentError(f"a private measurement of '{purpose}' was not planned")
        if sampling_probability > planned.sampling_probability:
            raise BudgetSpentError(
                f"'{purpose}' was planned for records sampled with probability "
                f"{planned.sampling_probability}, not {sampling_probability}"
            )
        self._record(planned)
        return planned.noise_multiplier

    def charge_without_noise(self, purpose: str) -> None:
        """Record one exact look at private rows; only a plan without privacy has room for it."""
        planned = self._plan.get(purpose)
        if planned is None or planned.noise_multiplier is not None:
            raise BudgetSpentError(f"an exact measurement of '{purpose}' was not planned")
        self._record(planned)

    def _record(self, planned: Entry) -> None:
        spent = self._spent.get(planned.purpose, 0)
        if spent >= planned.draws:
            raise BudgetSpentError(
                f"all {planned.draws} planned draws for '{planned.purpose}' are spent"
            )
        self._spent[planned.purpose] = spent + 1

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
