"""What hides a record: Gaussian or Laplace noise from the operating system's entropy.

Every noise value is a quantile at 53 fresh bits of `os.urandom`: there is no seed to
guess and no stream to rewind. A seeded source exists for tests and for papers; what is made with
it is stamped as not for release.
"""

import os
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from limbeck.privacy.clipping import Bounded
from limbeck.privacy.ledger import Ledger


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
    """Independent N(0, 1) values in float64.

    One bit is the sign, 52 are a point of the lower half: exact in floating point, never infinite.
    """
    bits = np.frombuffer(entropy.bytes(8 * int(np.prod(shape))), np.uint64)
    lower_half = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-53
    sign = np.where(bits & np.uint64(1), -1.0, 1.0)
    return np.asarray(sign * ndtri(lower_half), np.float64).reshape(shape)


def standard_laplace(entropy: Entropy, shape: tuple[int, ...]) -> np.ndarray:
    """Independent values of density exp(−|x|)/2 in float64: a sign, and a quantile of 52 bits."""
    bits = np.frombuffer(entropy.bytes(8 * int(np.prod(shape))), np.uint64)
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    sign = np.where(bits & np.uint64(1), -1.0, 1.0)
    return np.asarray(-sign * np.log(uniform), np.float64).reshape(shape)


def gaussian(bounded: Bounded, *, purpose: str, ledger: Ledger, entropy: Entropy) -> np.ndarray:
    """The bounded value plus Gaussian noise: the only way out of `measure/`.

    **Guarantee.** One draw, charged to the ledger before it is made: a Gaussian event with the
    plan's noise multiplier, the standard deviation being that times `bounded.record_norm`, Poisson
    sampled if the records were. The noise is added in float64.
    """
    if not isinstance(bounded, Bounded):
        raise TypeError("only a Bounded can be noised; clip it with limbeck.privacy.clipping first")
    noise_multiplier = ledger.charge(purpose, sampling_probability=bounded.sampling_probability)
    value = np.asarray(bounded.value, np.float64)
    deviation = noise_multiplier * bounded.record_norm
    return value + deviation * standard_normal(entropy, value.shape)


def laplace(bounded: Bounded, *, purpose: str, ledger: Ledger, entropy: Entropy) -> np.ndarray:
    """The bounded value plus Laplace noise: the other way out of `measure/`.

    **Guarantee.** One draw, charged before it is made: a Laplace event with the plan's noise
    multiplier b, the scale being that times `bounded.record_l1_norm`. By itself it is 1/b-DP where
    a record comes or goes, 2/b-DP where one is replaced.
    """
    if not isinstance(bounded, Bounded) or bounded.record_l1_norm is None:
        raise TypeError("only a Bounded with an L1 norm can have Laplace noise")
    noise_multiplier = ledger.charge(
        purpose, sampling_probability=bounded.sampling_probability, mechanism="laplace"
    )
    value = np.asarray(bounded.value, np.float64)
    scale = noise_multiplier * bounded.record_l1_norm
    return value + scale * standard_laplace(entropy, value.shape)
