"""What is promised: (ε, δ), between which neighbours, and how it is shared out."""

import dataclasses
import enum
import math

from limbeck.errors import UserError


class Adjacency(enum.Enum):
    """Which two data sets are neighbours.

    ADD_REMOVE: one has a record that the other has not (the papers' inclusion/exclusion).
    REPLACE: they differ in the value of one record, and the number of records is public.
    """

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @property
    def records_changed(self) -> int:
        """How many bounded contributions differ between neighbours: one leaves, one may enter."""
        return 1 if self is Adjacency.ADD_REMOVE else 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """The promise: the release is (ε, δ)-differentially private for this adjacency.

    Examples
    --------
    >>> Budget(epsilon=1.0, delta=1e-5).adjacency.value
    'add-remove'
    """

    epsilon: float
    delta: float = 1e-5
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise UserError(f"epsilon must be a positive number, not {self.epsilon}")
        if not 0 < self.delta < 1:
            raise UserError(
                f"delta must lie between 0 and 1 (1e-5 is usual, and well below one over the "
                f"number of records), not {self.delta}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measurement:
    """A planned Gaussian measurement: how often it is made, on what part of the records.

    Attributes
    ----------
    purpose : what is measured, in a word; the name under which the ledger keeps it.
    draws : how many times noise is drawn.
    sampling_probability : the chance of each record to take part in one draw; 1 for all records.
    share : this measurement's share of the noise budget, relative to the other shares.
    """

    purpose: str
    draws: int = 1
    sampling_probability: float = 1.0
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise UserError(f"{self.purpose}: at least one draw is needed, not {self.draws}")
        if not 0 < self.sampling_probability <= 1:
            raise UserError(
                f"{self.purpose}: the sampling probability must lie in (0, 1], "
                f"not {self.sampling_probability}"
            )
        if not self.share > 0:
            raise UserError(f"{self.purpose}: its share must be positive, not {self.share}")

    def noise_multiplier(self, mu: float, total_share: float) -> float:
        """The σ at which this measurement spends its share of μ².

        T full Gaussian draws spend μ² = T/σ². T draws with Poisson sampling spend, in the limit of
        many draws, μ² = q² T (exp(1/σ²) − 1) (Bu et al. 2020, Corollary 5.4). The limit settles
        only how the budget is shared; what the whole costs is left to the accountant.
        """
        mu_squared = self.share / total_share * mu**2
        if self.sampling_probability == 1:
            return math.sqrt(self.draws / mu_squared)
        per_draw = mu_squared / (self.sampling_probability**2 * self.draws)
        return 1 / math.sqrt(math.log1p(per_draw))
