"""What hides a record: Gaussian or Laplace noise from the operating system's entropy.

Sums are integers and noise is rounded to integers (`privacy/rounded.py`), so that no low-order bit
of a released number depends on a record. Every draw uses fresh bits of `os.urandom`. A seeded
source exists for tests and papers; what is made with it is stamped as not for release.
"""

import math
import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from limbeck.privacy.bounded import Bounded
from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger
from limbeck.privacy.rounded import rounded_gaussian, rounded_laplace


class Entropy(Protocol):
    """A source of random bytes."""

    seeded: bool

    def bytes(self, length: int) -> bytes:
        """So many fresh bytes."""
        ...


class SystemEntropy:
    """The operating system's cryptographic random bytes."""

    seeded = False

    def bytes(self, length: int) -> bytes:
        """So many fresh bytes."""
        return os.urandom(length)


class SeededEntropy:
    """Reproducible bytes from a seed: predictable, hence no privacy against who knows the seed."""

    seeded = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.Philox(seed))

    def bytes(self, length: int) -> bytes:
        """The next bytes of the stream."""
        return self._generator.bytes(length)


def entropy(seed: int | None = None) -> Entropy:
    """System entropy, or a seeded stream when a seed is given."""
    return SystemEntropy() if seed is None else SeededEntropy(seed)


def standard_normal(entropy: Entropy, shape: tuple[int, ...]) -> np.ndarray:
    """Independent N(0, 1) values in float64, for public randomness such as starting points.

    One bit is the sign, 52 are a point of the lower half: exact in floating point, never infinite.
    """
    bits = np.frombuffer(entropy.bytes(8 * int(np.prod(shape))), np.uint64)
    lower_half = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), -1.0, 1.0)
    return np.asarray(sign * ndtri(lower_half), np.float64).reshape(shape)


def gaussian(bounded: Bounded, *, purpose: str, ledger: Ledger, entropy: Entropy) -> np.ndarray:
    """The bounded sum plus rounded Gaussian noise, in float64.

    **Guarantee.** One draw, charged to the ledger before it is made: a Gaussian event with the
    plan's noise multiplier, the standard deviation being that times the bound of a record in L2.
    Noise is rounded to the grid of the sum, which is post-processing of the continuous mechanism.
    """
    return _noised(bounded, bounded.l2_bound, rounded_gaussian, ledger.charge(purpose), entropy)


def laplace(bounded: Bounded, *, purpose: str, ledger: Ledger, entropy: Entropy) -> np.ndarray:
    """The bounded sum plus rounded Laplace noise, in float64.

    **Guarantee.** One draw, charged before it is made: a Laplace event with the plan's noise
    multiplier b, the scale being that times the bound of a record in L1. By itself it is 1/b-DP
    where a record comes or goes, 2/b-DP where one is replaced.
    """
    if bounded.l1_bound is None:
        raise TypeError("Laplace noise needs a contribution with a bound in L1")
    return _noised(bounded, bounded.l1_bound, rounded_laplace, ledger.charge(purpose), entropy)


def _noised(
    bounded: Bounded,
    bound: float,
    rounded: Callable[[Entropy, tuple[int, ...], float], NDArray[np.int64]],
    planned: Entry,
    entropy: Entropy,
) -> np.ndarray:
    if not isinstance(bounded, Bounded):
        raise TypeError("noise is added to a Bounded only")
    if planned.noise_multiplier is None or planned.mechanism not in rounded.__name__:
        raise BudgetSpentError(f"'{planned.purpose}' was not planned with this noise")
    # The product is rounded up: the noise is never less than planned.
    scale = math.nextafter(planned.noise_multiplier * bound, math.inf)
    noisy = bounded.value + rounded(entropy, bounded.value.shape, scale)
    return noisy.astype(np.float64) * bounded.grid
