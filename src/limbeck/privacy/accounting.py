"""What the draws add up to, by dp-accounting; and the noise that a budget needs.

No accountant is written here. Privacy-loss distributions ("PLD", connect-the-dots, pessimistic)
give an upper bound on ε that is tight to about 1e-3; an event that the accountant does not know
is an error.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence

import dp_accounting
from dp_accounting import pld
from scipy.optimize import brentq

from limbeck.errors import UserError
from limbeck.privacy.budget import Adjacency, Budget, Measurement
from limbeck.privacy.ledger import Entry, Ledger

# Below it the accountant's own error, which is on the safe side, asks for ever more noise.
LEAST_DELTA = 1e-12

ACCOUNTANT = "dp-accounting, privacy loss distributions"

_RELATIONS = {
    Adjacency.ADD_REMOVE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    # Under REPLACE_ONE dp-accounting takes the noise multiplier relative to the norm of one
    # record's contribution, as for ADD_OR_REMOVE_ONE, and accounts for the doubled distance itself.
    Adjacency.REPLACE: dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def epsilon(
    entries: Iterable[Entry], delta: float, adjacency: Adjacency, interval: float = 1e-4
) -> float:
    """The ε at δ of everything drawn; infinite if something was not noised.

    `interval` is the grid of privacy losses: a coarser one is faster and never gives less.

    Examples
    --------
    >>> entry = Entry(purpose="sum", draws=1, noise_multiplier=3.7307)
    >>> round(epsilon([entry], 1e-5, Adjacency.ADD_REMOVE), 4)
    1.0
    """
    return _epsilon(tuple(entries), delta, adjacency, interval)


@functools.lru_cache(maxsize=1024)  # refitting with the same plan skips the computation
def _epsilon(
    entries: tuple[Entry, ...], delta: float, adjacency: Adjacency, interval: float
) -> float:
    if not entries:
        return 0.0
    accountant = pld.PLDAccountant(_RELATIONS[adjacency], interval)
    events = [_event(entry, adjacency) for entry in entries]
    accountant.compose(dp_accounting.ComposedDpEvent(events))
    return float(accountant.get_epsilon(delta))


def group_epsilon(
    entries: Iterable[Entry], delta: float, adjacency: Adjacency, records: int
) -> float | None:
    """The ε at δ for that many records together, where all draws are Gaussian and unsampled.

    Such draws compose to one Gaussian mechanism with μ² = Σ draws/σ², and k records move it k times
    as far. `None` for other draws.

    Examples
    --------
    >>> entry = Entry(purpose="sum", draws=1, noise_multiplier=3.7307)
    >>> round(group_epsilon([entry], 1e-5, Adjacency.ADD_REMOVE, records=10), 2)
    14.43
    """
    mu_squared = 0.0
    for entry in entries:
        if entry.mechanism != "gaussian" or entry.sampling_probability < 1:
            return None
        if entry.noise_multiplier is None:
            return None
        mu_squared += entry.draws / entry.noise_multiplier**2
    if not mu_squared:
        return None
    sigma = 1 / (math.sqrt(mu_squared) * adjacency.records_changed * records)
    return float(dp_accounting.get_epsilon_gaussian(sigma, delta))


def _event(entry: Entry, adjacency: Adjacency) -> dp_accounting.DpEvent:
    """As the accountant wants it: it has no Laplace noise for records that are replaced.

    There a draw of scale b is 2/b-DP, and no mechanism that is says more than an answer to "which
    of the two?" that is true with odds e^(2/b) (Kairouz, Oh & Viswanath 2015).
    """
    if entry.mechanism == "gaussian" or adjacency is Adjacency.ADD_REMOVE:
        return entry.event
    assert entry.noise_multiplier is not None
    odds = math.exp(2 / entry.noise_multiplier)
    answer = dp_accounting.RandomizedResponseDpEvent(2 / (1 + odds), num_buckets=2)
    return dp_accounting.SelfComposedDpEvent(answer, entry.draws)


def calibrate(
    measurements: Sequence[Measurement], budget: Budget, settled: Sequence[Entry] = ()
) -> tuple[Entry, ...]:
    """The least noise at which all planned measurements together meet the budget.

    One number is searched for, the total μ that the measurements share out among themselves, beside
    what is `settled`: entries whose noise is given. What the result spends, settled entries first,
    is at most ε, and short of it by less than 1e-3.

    **Guarantee.** The composed events are (ε, δ)-DP by the accountant's own bound, whatever the
    shares are.
    """
    if budget.delta < LEAST_DELTA:
        raise UserError(
            f"delta below {LEAST_DELTA:g} is finer than the accountant resolves; 1e-9 is small "
            "enough for any number of records"
        )
    if settled and epsilon(settled, budget.delta, budget.adjacency) >= budget.epsilon:
        spent_on = ", ".join(entry.purpose for entry in settled)
        raise UserError(f"{spent_on}: takes more than the whole budget; give it less")
    total_share = sum(m.share for m in measurements)

    def entries(noise: float) -> tuple[Entry, ...]:
        planned = tuple(
            Entry(
                purpose=m.purpose,
                draws=m.draws,
                sampling_probability=m.sampling_probability,
                noise_multiplier=m.noise_multiplier(1 / noise, total_share),
            )
            for m in measurements
        )
        return (*settled, *planned)

    def spent(noise: float, interval: float) -> float:
        return epsilon(entries(noise), budget.delta, budget.adjacency, interval)

    return entries(_least_noise(spent, budget))


def _least_noise(spent: Callable[[float, float], float], budget: Budget) -> float:
    """The least noise for which `spent(noise, interval)`, which falls with it, is at most ε.

    A root is found on a coarse grid of privacy losses, and again on a fine one beside it. The
    search comes from the side of more noise, because a large ε takes long to account for.
    """
    fine = 1e-4 * max(1.0, budget.epsilon / 3)
    target = budget.epsilon - 5e-5 * min(1.0, budget.epsilon)  # and never above ε
    start = 2 * float(dp_accounting.get_sigma_gaussian(budget.epsilon, budget.delta))
    coarse = _root(lambda noise: spent(noise, 10 * fine) - target, start, 1.25, rtol=1e-4)
    noise = _root(lambda noise: spent(noise, fine) - target, 1.001 * coarse, 1.003, rtol=1e-7)
    while spent(noise, fine) > budget.epsilon:
        noise *= 1 + 1e-6
    return noise


def _root(excess: Callable[[float], float], start: float, step: float, rtol: float) -> float:
    """Where the falling function `excess` is zero: bracketed by steps from `start`, then solved."""
    high = start
    while excess(high) > 0:
        high *= 2
        if high > 1e6:
            raise UserError("no amount of noise meets the budget with so many draws; plan fewer")
    low = high / step
    while excess(low) <= 0:
        high, low = low, low / step
    return float(brentq(excess, low, high, rtol=rtol))


def interrupted(ledger: Ledger, budget: Budget) -> KeyboardInterrupt:
    """An interrupt that says what had been spent when it came."""
    planned = sum(entry.draws for entry in ledger.plan)
    spent = epsilon(ledger.entries, budget.delta, budget.adjacency)
    return KeyboardInterrupt(
        f"interrupted; nothing was written. {ledger.draws} of {planned} draws of noise had been "
        f"made, worth epsilon={spent:.4f} at delta={budget.delta:g}; since none of them was "
        "released, starting again does not add to that"
    )
