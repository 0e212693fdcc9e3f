"""How far teachers agreed, as Theorem 7 of G-PATE has it: **private**, for the owner's eyes alone.

Where most teachers choose the same bin, one of them hardly matters, and a bound that knows the
votes is far below one that does not. But it is a function of the votes: publishing it, or stopping
by it, is a leak. It is a diagnostic, and nothing here is part of a guarantee or of a bundle.

References
----------
Papernot et al. 2018, Theorem 6 and Proposition 7 (here Theorem 7); Appendix A.5.2 of G-PATE.
"""

import numpy as np
from dp_accounting import rdp
from numpy.typing import NDArray
from scipy.special import erfc

Floats = NDArray[np.float64]

ORDERS = np.array([1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512])


def chance_of_another(counts: Floats, sigma: float) -> Floats:
    """q̃: for each row of counts [q, B], at least the chance that noise makes another bin win.

    Σ over other bins of ½ erfc((n_max − n_i) / 2σ), and at most 1 − 1/B.
    """
    ahead = counts.max(axis=1, keepdims=True) - counts
    others = 0.5 * erfc(ahead / (2 * sigma))
    winner = counts.argmax(axis=1)
    found = others.sum(axis=1) - others[np.arange(len(counts)), winner]
    return np.minimum(found, 1 - 1 / counts.shape[1])


def divergence(counts: Floats, sigma: float, orders: Floats = ORDERS) -> Floats:
    """The Rényi divergence [q, orders] of the noisy winner, by Theorem 7 where it helps.

    Elsewhere λ/σ², which holds for any votes.
    """
    q = np.maximum(chance_of_another(counts, sigma), 1e-300)[:, None]
    free = np.broadcast_to(orders / sigma**2, (len(counts), len(orders)))
    mu2 = np.maximum(sigma * np.sqrt(np.log(1 / q)), 1 + 1e-9)
    mu1 = mu2 + 1
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    with np.errstate(all="ignore"):
        small = np.log(q) <= (mu2 - 1) * eps2 - mu2 * np.log(mu1 / (mu1 - 1) * mu2 / (mu2 - 1))
        log_a = np.log1p(-q) - np.log1p(-np.exp((np.log(q) + eps2) * (mu2 - 1) / mu2))
        log_b = eps1 - np.log(q) / (mu1 - 1)
        both = np.logaddexp(np.log1p(-q) + (orders - 1) * log_a, np.log(q) + (orders - 1) * log_b)
        bound = both / (orders - 1)
    helps = small & (orders <= mu1) & (mu2 > 1 + 1e-6) & np.isfinite(bound)
    return np.where(helps, np.minimum(np.maximum(bound, 0), free), free)


class Consensus:
    """The sum over all queries so far."""

    def __init__(self) -> None:
        self._sum = np.zeros(len(ORDERS))

    def add(self, counts: Floats, sigma: float, consensus_sigma: float | None = None) -> None:
        """One step: the winners, and the largest counts if they were asked for."""
        self._sum += divergence(counts, sigma).sum(axis=0)
        if consensus_sigma is not None:
            self._sum += len(counts) * ORDERS / (2 * consensus_sigma**2)

    def epsilon(self, delta: float) -> float:
        """At δ, by the votes that were cast."""
        return float(rdp.compute_epsilon(ORDERS, self._sum, delta)[0])
