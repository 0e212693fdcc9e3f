"""Exact sampling of Gaussian and Laplace noise rounded to integers.

For an integer sum S and continuous noise Z, S + round(Z) = round(S + Z), so a release with rounded
noise is post-processing of the continuous mechanism. This module samples round(Z) from exactly its
distribution, so nothing has to be charged to δ.

The sign is one random bit. The magnitude |X| is where the tail probability P[|X| > t] equals V, a
uniform number in (0, 1) given by an unlimited stream of bits, of which 63 are drawn at first:

1. The fast path evaluates |X| in float64 with a proven error bound. It settles every draw whose
   error interval contains no half-integer after scaling.
2. The exact path settles the others. It encloses P[|X| > (n + 1/2) / scale] between integers by
   directed rounding, compares V with it, and draws further bits of V until that is decided.

The error bounds below are established by `benchmarks/certify_quantile.py`; `docs/noise.md` has the
argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from limbeck.privacy.noise import Entropy

LARGEST_SCALE = 2.0**50
BITS = 63
"""Number of bits of V that the fast path uses; the 64th is the sign."""

CHUNK = 1 << 14
"""Number of draws that the fast path takes at a time, so that its arrays stay in the cache."""

# Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988): numerators and denominators of
# the normal quantile, constant term first.
CENTRE_RADIUS_SQUARED = 0.180625
CENTRE_NUMERATOR = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
CENTRE_DENOMINATOR = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
TAIL_NUMERATOR = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
TAIL_DENOMINATOR = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
LOG_2 = 0.6931471805599453
ATANH = tuple(2.0 / (2 * j + 1) for j in range(12))
"""Coefficients of log((1 + s) / (1 − s)) / s in powers of s²; |s| < 0.172 here."""

# Bounds on the error of a magnitude before scaling. They include the interval that 63 bits leave
# open and the rounding of the product with the scale. Proven by benchmarks/certify_quantile.py.
CENTRE_ERROR = 24 * 2.0**-53
TAIL_ERROR = 96 * 2.0**-53
LAPLACE_ERROR = 48 * 2.0**-53

# 63-bit words below these belong to tails for which the bounds are not claimed.
CENTRE_FROM = int(0.15 * 2.0**BITS)
NORMAL_TAIL_FROM = 1 << 48
LAPLACE_FROM = 1 << 50

Floats = NDArray[np.float64]


def rounded_gaussian(
    entropy: Entropy, shape: tuple[int, ...], deviation: float
) -> NDArray[np.int64]:
    """Independent samples of round(deviation · Z), Z ~ N(0, 1), from exactly this distribution.

    **Guarantee.** An integer sum plus these samples is post-processing of the sum plus
    N(0, deviation²) noise. It is accounted for as the Gaussian mechanism, and adds nothing to δ.

    `deviation` is positive and at most 2^50; otherwise a ValueError is raised. Above 2^40 more than
    one draw in a hundred takes the exact path, which is a thousand times slower.

        >>> from limbeck.privacy.noise import SeededEntropy
        >>> rounded_gaussian(SeededEntropy(0), (4,), 10.0).dtype
        dtype('int64')
    """
    return _sample(entropy, shape, deviation, GAUSSIAN)


def rounded_laplace(entropy: Entropy, shape: tuple[int, ...], scale: float) -> NDArray[np.int64]:
    """Independent samples of round(scale · X), X of density exp(−|x|)/2, exactly distributed.

    **Guarantee.** An integer sum plus these samples is post-processing of the sum plus Laplace
    noise of this scale. It is accounted for as the Laplace mechanism, and adds nothing to δ.

    `scale` is positive and at most 2^50; otherwise a ValueError is raised.
    """
    return _sample(entropy, shape, scale, LAPLACE)


class Law(NamedTuple):
    """A symmetric distribution, given by its magnitude |X|."""

    magnitude: Callable[[NDArray[np.int64]], tuple[Floats, Floats]]
    """Approximate |X| for words of V, with error bounds; infinite where none is claimed."""
    exceedance: Callable[[int, int, int], tuple[int, int]]
    """Integers below and above 2^bits · P[|X| > numerator / denominator]."""


def _sample(entropy: Entropy, shape: tuple[int, ...], scale: float, law: Law) -> NDArray[np.int64]:
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"the scale of rounded noise must be in (0, 2^50], not {scale}")
    words = np.frombuffer(entropy.bytes(8 * math.prod(shape)), np.dtype("<u8"))
    drawn = np.empty(words.size, np.int64)
    for start in range(0, words.size, CHUNK):
        chunk = slice(start, start + CHUNK)
        drawn[chunk] = _settle(entropy, words[chunk], float(scale), law)
    return drawn.reshape(shape)


def _settle(
    entropy: Entropy, words: NDArray[np.uint64], scale: float, law: Law
) -> NDArray[np.int64]:
    """Noise for 64-bit words: the lowest bit is the sign, the others are the first bits of V."""
    uniform = (words >> np.uint64(1)).view(np.int64)
    x, error = law.magnitude(uniform)
    scaled = scale * x
    nearest = np.rint(scaled)
    # scaled - nearest is exact in float64; 2^-50 covers the rounding of the right-hand side.
    settled = np.abs(scaled - nearest) < 0.5 - 2.0**-50 - scale * error
    drawn = nearest.astype(np.int64)
    for i in np.flatnonzero(~settled):
        drawn[i] = _exact(entropy, int(uniform[i]), scale, law, guess=int(drawn[i]))
    return np.where(words & np.uint64(1), -drawn, drawn)


# The fast path. The certification runs _centre, _tail and _minus_log on its own number types.


def _normal_magnitude(uniform: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """|Z| with P[|Z| > z] = V, in the two inner regions of AS 241."""
    x, error = np.empty(uniform.size), np.full(uniform.size, CENTRE_ERROR)
    centre = uniform >= CENTRE_FROM
    complement = (2**BITS - 1) - uniform[centre]
    x[centre] = _centre((complement.astype(np.float64) + 0.5) * 2.0 ** -(BITS + 1))
    outer = uniform[~centre]
    x[~centre] = _tail(_minus_log(*_split((outer.astype(np.float64) + 0.5) * 2.0 ** -(BITS + 1))))
    error[~centre] = np.where(outer < NORMAL_TAIL_FROM, np.inf, TAIL_ERROR)
    return x, error


def _laplace_magnitude(uniform: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """−log V."""
    x = _minus_log(*_split((uniform.astype(np.float64) + 0.5) * 2.0**-BITS))
    return x, np.where(uniform < LAPLACE_FROM, np.inf, LAPLACE_ERROR)


def _centre(q: Floats) -> Floats:
    """The normal quantile at 1/2 + q, for 0 ≤ q ≤ 0.425."""
    r = CENTRE_RADIUS_SQUARED - q * q
    return q * (_horner(CENTRE_NUMERATOR, r) / _horner(CENTRE_DENOMINATOR, r))


def _tail(minus_log: Floats) -> Floats:
    """The normal quantile at 1 − p, given −log p, for p ≤ 0.075."""
    r = np.sqrt(minus_log) - 1.6
    return _horner(TAIL_NUMERATOR, r) / _horner(TAIL_DENOMINATOR, r)


def _split(v: Floats) -> tuple[Floats, Floats]:
    """f and e such that v = (1 + f) 2^e and √½ ≤ 1 + f < √2; all steps are exact."""
    mantissa, exponent = np.frexp(v)
    small = mantissa < math.sqrt(0.5)
    return np.where(small, 2 * mantissa, mantissa) - 1.0, np.where(small, exponent - 1.0, exponent)


def _minus_log(f: Floats, e: Floats) -> Floats:
    """−log((1 + f) 2^e) by basic arithmetic alone, so that no library's logarithm is trusted."""
    s = f / (f + 2.0)
    return e * -LOG_2 - s * _horner(ATANH, s * s)


def _horner(coefficients: tuple[float, ...], r: Floats) -> Floats:
    value = r * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * r + coefficient
    return value


# The exact path: integers with directed rounding.


def _exact(entropy: Entropy, uniform: int, scale: float, law: Law, guess: int) -> int:
    """The magnitude n for which (n − 1/2) / scale < |X| < (n + 1/2) / scale.

    A search among comparisons of V with exceedance probabilities. The guess is where it starts; the
    result does not depend on it.
    """
    numerator, denominator = scale.as_integer_ratio()
    bits = BITS

    def exceeds(n: int) -> bool:
        """Whether |X| > (n + 1/2) / scale, which is V < P[|X| > (n + 1/2) / scale]."""
        nonlocal uniform, bits
        while True:
            low, high = law.exceedance((2 * n + 1) * denominator, 2 * numerator, bits + 8)
            if (uniform + 1) << 8 <= low:
                return True
            if uniform << 8 >= high:
                return False
            uniform = uniform << 64 | int.from_bytes(entropy.bytes(8), "little")
            bits += 64

    low, high, step = guess - 1, guess, 1
    while low >= 0 and not exceeds(low):
        low, high, step = max(low - step, -1), low, 2 * step
    while exceeds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def _normal_exceedance(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """P[|Z| > t] = 1 − √(2/π) t Σ_j (−t²/2)^j / (j! (2j + 1)), in units of 2^-bits."""
    squared = numerator * numerator, 2 * denominator * denominator
    if 36 * squared[0] >= 25 * bits * squared[1]:  # P ≤ exp(−t²/2) < 2^-bits
        return 0, 1
    width = _width(squared, bits)
    low, high = _alternating(squared, 2, width)
    root_low, root_high = _root_of_two_over_pi(width)
    low = max(low, 0) * root_low * numerator // denominator
    high = _ceil(high * root_high * numerator, denominator)
    one = 1 << 2 * width
    return max(one - high, 0) >> 2 * width - bits, _ceil(one - low, 1 << 2 * width - bits)


def _laplace_exceedance(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """P[|X| > t] = exp(−t) = Σ_j (−t)^j / j!, in units of 2^-bits."""
    if 36 * numerator >= 25 * bits * denominator:  # exp(−t) < 2^-bits
        return 0, 1
    width = _width((numerator, denominator), bits)
    low, high = _alternating((numerator, denominator), 0, width)
    return max(low, 0) >> width - bits, _ceil(high, 1 << width - bits)


GAUSSIAN = Law(_normal_magnitude, _normal_exceedance)
LAPLACE = Law(_laplace_magnitude, _laplace_exceedance)


def _width(z: tuple[int, int], bits: int) -> int:
    """Fractional bits for an alternating series in z, whose largest term is below exp(z)."""
    return -(-(bits + 3 * (z[0] // z[1]) // 2 + 24) // 32) * 32


def _alternating(z: tuple[int, int], odd: int, width: int) -> tuple[int, int]:
    """Integers below and above 2^width · Σ_j (−z)^j / (j! (1 + odd · j)) for a rational z ≥ 0."""
    z_low = (z[0] << width) // z[1]
    z_high = z_low + 1
    low = high = 0
    term_low = term_high = 1 << width  # encloses z^j / j!
    j = 0
    while term_high > 1 or j << width <= z_high:
        divisor = 1 + odd * j
        below, above = term_low // divisor, _ceil(term_high, divisor)
        low, high = (low + below, high + above) if j % 2 == 0 else (low - above, high - below)
        j += 1
        term_low = (term_low * z_low >> width) // j
        term_high = _ceil(term_high * z_high, j << width)
    return low - term_high, high + term_high  # terms decrease from here: the rest is below one


@lru_cache(maxsize=64)
def _root_of_two_over_pi(width: int) -> tuple[int, int]:
    """Integers below and above 2^width · √(2/π)."""
    low, high = _pi(width)
    square = 1 << 3 * width + 1
    return math.isqrt(square // high), math.isqrt(_ceil(square, low)) + 1


def _pi(width: int) -> tuple[int, int]:
    """Integers below and above 2^width · π, by Machin's 16 arctan(1/5) − 4 arctan(1/239)."""
    fifth, other = _arctan_of_inverse(5, width), _arctan_of_inverse(239, width)
    return 16 * fifth[0] - 4 * other[1], 16 * fifth[1] - 4 * other[0]


def _arctan_of_inverse(m: int, width: int) -> tuple[int, int]:
    """Integers below and above 2^width · Σ_j (−1)^j / ((2j + 1) m^(2j + 1))."""
    low = high = j = 0
    while (term := (1 << width) // ((2 * j + 1) * m ** (2 * j + 1))) > 0:
        low, high = (low + term, high + term + 1) if j % 2 == 0 else (low - term - 1, high - term)
        j += 1
    return low - 1, high + 1


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
