"""The noise budget as a picture: which measurement took what share of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from limbeck.privacy.ledger import Entry
from limbeck.release import card

COLOURS = 6  # of the style sheet


@dataclass(frozen=True)
class Part:
    """One event of the ledger and its piece of the bar; without noise it has none.

    `start` and `share` are parts of the whole, from 0 to 1.
    """

    event: Entry
    colour: int
    start: float
    share: float | None

    @property
    def noise(self) -> str:
        """Its noise in words."""
        return card.multiplier(self.event.noise_multiplier, self.event.mechanism)

    @property
    def percent(self) -> str:
        """The share in words."""
        if self.share is None:
            return "none"
        return "below 0.1%" if self.share < 0.001 else f"{self.share:.1%}"


def parts(events: Sequence[Entry]) -> list[Part]:
    """The events in the order of first draw, each with its share."""
    found, start = [], 0.0
    for number, (event, share) in enumerate(zip(events, shares(events), strict=True)):
        found.append(Part(event, number % COLOURS, start, share))
        start += share or 0.0
    return found


def shares(events: Sequence[Entry]) -> list[float | None]:
    """Each event's share of the noise budget; none where anything was looked at without noise.

    The share is that of μ² = draws / σ², in which Gaussian draws add up exactly. Draws on Poisson
    samples count q² · draws / σ², which is the first order of what they cost.

    >>> shares([Entry(purpose="a", draws=3, noise_multiplier=2.0),
    ...         Entry(purpose="b", draws=1, noise_multiplier=2.0)])
    [0.75, 0.25]
    """
    costs = []
    for event in events:
        if event.noise_multiplier is None:
            return [None] * len(events)
        costs.append(event.sampling_probability**2 * event.draws / event.noise_multiplier**2)
    return [cost / sum(costs) for cost in costs]


def is_approximate(events: Sequence[Entry]) -> bool:
    """Whether the shares hold to first order only: several events, some on samples, or Laplace."""
    exact = [e.sampling_probability == 1 and e.mechanism == "gaussian" for e in events]
    return len(events) > 1 and not all(exact)
