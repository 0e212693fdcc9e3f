"""One execution of a method: its ledger, its noise, its progress, and the one private operation."""

import math
from typing import Any, Protocol, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy import accounting, noise, sampling
from limbeck.privacy.bounded import Bounded, Contribution
from limbeck.privacy.budget import Budget
from limbeck.privacy.ledger import Ledger, NoCopy
from limbeck.privacy.plan import Plan
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]
Block = TypeVar("Block", covariant=True)

# The purpose of noisy class counts, whose sum estimates the number of records.
CLASS_COUNTS = "class counts"


class Summable(Protocol[Block]):
    """Private records over which contributions can be added up."""

    def total(
        self, contribution: Contribution[Any, Block], public: Any, sample: sampling.Sample
    ) -> NDArray[np.int64] | Floats:
        """The sum of the contributions of the sampled records."""
        ...


class Made(TypedDict):
    """What a bundle says of the run that made it."""

    budget: Budget | None
    ledger: Ledger
    seeded: bool
    noisy_rows: float | None


class Run(NoCopy):
    """What a method is given to measure private records with.

    `sum` is the only private operation. The plan, calibrated to the budget, settles beforehand how
    often each measurement is made, with which noise, and on which sample of the records.
    """

    def __init__(
        self,
        plan: Plan,
        budget: Budget | None,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> None:
        self.budget, self.progress = budget, progress
        self.ledger = Ledger(plan.calibrated(budget))
        self.entropy = noise.entropy(seed)
        self.noisy_rows: float | None = None

    def sum(
        self,
        rows: Summable[Block],
        contribution: Contribution[Any, Block],
        public: Any = None,
        *,
        purpose: str,
    ) -> Floats:
        """The noisy sum of the contributions of a sample of the records.

        `public` is whatever the contribution needs besides the records: settings, or numbers that
        depend on the records through earlier noisy sums only.

        **Guarantee.** One event of the ledger, charged before the noise is drawn: Gaussian or
        Laplace noise of the planned multiplier, relative to the bound of the contribution, on a
        Poisson sample of the planned probability. The sum is an integer multiple of the
        contribution's grid, and noise is rounded to the same grid (docs/noise.md). Where the plan
        has no noise the exact sum is returned, and the bundle is marked as not private.
        """
        planned = self.ledger.planned(purpose)
        sample = sampling.Sample(self.entropy, planned.sampling_probability)
        total = rows.total(contribution, public, sample)
        if planned.noise_multiplier is None:
            self.ledger.charge(purpose)
            return np.asarray(total, np.float64) * contribution.grid
        bounded = Bounded(total, contribution)
        draw = noise.gaussian if planned.mechanism == "gaussian" else noise.laplace
        noisy = draw(bounded, purpose=purpose, ledger=self.ledger, entropy=self.entropy)
        if purpose == CLASS_COUNTS:
            self.noisy_rows = float(noisy.sum())
        return noisy

    def deviation(self, purpose: str, contribution: Contribution[Any, Any]) -> float:
        """The standard deviation of the Gaussian noise in each entry of such a sum."""
        return self.noise_multiplier(purpose) * contribution.l2_bound * contribution.grid

    def noise_multiplier(self, purpose: str) -> float:
        """The planned noise multiplier; infinite without noise, as no sum is then bounded."""
        multiplier = self.ledger.planned(purpose).noise_multiplier
        return math.inf if multiplier is None else multiplier

    def key_data(self) -> int:
        """Fresh random bits for a key of `jax.random`, for public randomness."""
        return int.from_bytes(self.entropy.bytes(4), "little")

    def made(self) -> Made:
        """What a bundle records of this run."""
        return {
            "budget": self.budget,
            "ledger": self.ledger,
            "seeded": self.entropy.seeded,
            "noisy_rows": self.noisy_rows,
        }

    def interrupted(self) -> KeyboardInterrupt:
        """An interrupt that says what had been spent when it came."""
        if self.budget is None:
            return KeyboardInterrupt("interrupted; nothing was written")
        return accounting.interrupted(self.ledger, self.budget)
