"""Rounded noise: its exact distribution, its tails, and that every count remains possible.

Statistical tests use fixed seeds, so they cannot fail by chance; the bounds are those that fresh
noise would exceed with the probability stated. The oracle is mpmath at 400 bits or more, which
shares no code with the sampler.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtri

from limbeck.privacy import rounded
from limbeck.privacy.noise import SeededEntropy
from limbeck.privacy.rounded import GAUSSIAN, LAPLACE, rounded_gaussian, rounded_laplace

SAMPLERS = {"gaussian": rounded_gaussian, "laplace": rounded_laplace}
LAWS = {"gaussian": GAUSSIAN, "laplace": LAPLACE}
both = pytest.mark.parametrize("name", SAMPLERS)


class Stream:
    """Entropy of given 64-bit words, in order; it fails when they are used up."""

    seeded = True

    def __init__(self, words):
        self.words, self.used = iter(words), 0

    def bytes(self, length):
        assert length % 8 == 0
        self.used += length // 8
        words = list(itertools.islice(self.words, length // 8))
        assert len(words) == length // 8, "more bits were drawn than the decision needs"
        return b"".join(word.to_bytes(8, "little") for word in words)


def exceedance(name, t):
    """P[|X| > t] in the working precision of mpmath."""
    return mpmath.erfc(t / mpmath.sqrt(2)) if name == "gaussian" else mpmath.exp(-t)


def magnitude_of(name, v):
    """The magnitude |X| that is exceeded with probability v."""
    if name == "laplace":
        return -mpmath.log(v)
    return mpmath.sqrt(2) * mpmath.erfinv(1 - v)


def threshold(name, n, scale):
    """P[|scale · X| > n + 1/2] in the working precision of mpmath."""
    return exceedance(name, (mpmath.mpf(n) + 0.5) / mpmath.mpf(scale))


def words_of(v, words, negative=False):
    """The first bits of v as a sampler reads them: 63 with the sign, then 64 a word."""
    bits = int(mpmath.floor(v * mpmath.mpf(2) ** (63 + 64 * words)))
    tail = [bits >> 64 * i & (2**64 - 1) for i in reversed(range(words))]
    return [(bits >> 64 * words) << 1 | negative, *tail]


@both
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 7.5, 40.0])
def test_the_distribution_is_exact(name, scale):
    """Chi-square against exact probabilities, 400 000 draws; fails by chance 1 time in 1000."""
    count = 400_000
    drawn = SAMPLERS[name](SeededEntropy(11), (count,), scale)
    largest = 0
    while count * threshold(name, largest, scale) / 2 > 20:
        largest += 1
    above = [float(threshold(name, n, scale)) / 2 for n in range(largest)]
    inner = -np.diff(above)
    expected = np.concatenate([above[-1:], inner[::-1], [1 - 2 * above[0]], inner, above[-1:]])
    found = np.bincount(np.clip(drawn, -largest, largest) + largest, minlength=2 * largest + 1)
    assert stats.chisquare(found, count * expected).pvalue > 1e-3


@both
@pytest.mark.parametrize("scale", [2.0**16 * 3.73, 2.0**30, 2.0**40])
def test_a_large_scale_is_like_continuous_noise(name, scale):
    """Kolmogorov–Smirnov; fails by chance 1 time in 1000."""
    drawn = SAMPLERS[name](SeededEntropy(12), (30_000,), scale)
    law = "norm" if name == "gaussian" else "laplace"
    assert stats.kstest(drawn / scale, law).pvalue > 1e-3
    parity = drawn % 2
    assert stats.binomtest(int(parity.sum()), parity.size).pvalue > 1e-3  # low-order bits are fair


@both
def test_a_tiny_scale_gives_zero(name):
    for scale in (5e-324, 1e-300, 1e-3):
        assert not SAMPLERS[name](SeededEntropy(13), (10_000,), scale).any()


@both
def test_a_tiny_scale_has_its_tail_all_the_same(name):
    """P[noise ≠ 0] is 2^-454 and 2^-36 here; words of zeros lead there."""
    scale = 0.02
    with mpmath.workprec(2000):
        limit = threshold(name, 0, scale)
        words = 8
        unit = 2 * mpmath.mpf(2) ** -(63 + 64 * words)
        for negative in (False, True):
            inside = words_of(limit - unit, words, negative)
            outside = words_of(limit + unit, words, negative)
            sign = -1 if negative else 1
            assert SAMPLERS[name](Stream(inside), (1,), scale).tolist() == [sign]
            assert SAMPLERS[name](Stream(outside), (1,), scale).tolist() == [0]


@both
@pytest.mark.parametrize("scale", [0.3, 1.0, 12.75, 2.0**30 + 0.5, 2.0**50])
@pytest.mark.parametrize("first", [0, 1, 2, 2**64 - 1, 2**64 - 2, 2**49, 2**51, 3 * 2**62])
def test_extreme_words_agree_with_mpmath(name, first, scale):
    rest = [0xB7E151628AED2A6A, 0xBF7158809CF4F3C7, 0x62E7160F38B4DA56]
    drawn = SAMPLERS[name](Stream([first, *rest]), (1,), scale)
    with mpmath.workprec(800):
        bits = first >> 1
        for word in rest:
            bits = bits << 64 | word
        v = (mpmath.mpf(bits) + 0.5) / mpmath.mpf(2) ** (63 + 192)
        expected = int(mpmath.nint(mpmath.mpf(scale) * magnitude_of(name, v)))
    assert drawn.tolist() == [-expected if first & 1 else expected]


@both
@pytest.mark.parametrize("scale", [0.4, 1.0, 7.5, 1000.3, 2.0**30 * 1.1, 2.0**45, 2.0**50])
@pytest.mark.parametrize("quantile", [0.0, 0.3, 1.2, 1.45, 3.0, 4.1, 5.5, 8.3, 9.5])
@pytest.mark.parametrize("words", [1, 2])
def test_words_that_straddle_a_half_integer_are_decided_by_further_bits(
    name, scale, quantile, words
):
    """V and P[|X| > (n + 1/2) / scale] differ by two units of the last bit that is drawn."""
    n = math.floor(quantile * scale)
    with mpmath.workprec(600):
        limit = threshold(name, n, scale)
        unit = 2 * mpmath.mpf(2) ** -(63 + 64 * words)
        above, below = limit - unit, limit + unit  # a smaller V is a larger magnitude
        for v, expected in ((above, n + 1), (below, n)):
            source = Stream(words_of(v, words))
            assert SAMPLERS[name](source, (1,), scale).tolist() == [expected]
            assert source.used == 1 + words


SCALES = st.one_of(st.floats(-10, 50).map(lambda exponent: 2.0**exponent), st.floats(1e-3, 2.0**50))


def exactly(name, first, scale, seed):
    """The exact path alone, from a guess that is far off."""
    found = rounded._exact(SeededEntropy(seed), first >> 1, scale, LAWS[name], guess=0)
    return -found if first & 1 else found


def drawn_from(name, first, scale, seed):
    source = SeededEntropy(seed)

    class First:
        seeded = True
        pending = (first.to_bytes(8, "little"),)

        def bytes(self, length):
            if self.pending:
                head, *self.pending = self.pending
                return head
            return source.bytes(length)

    return SAMPLERS[name](First(), (1,), scale).item()


@both
@given(first=st.integers(0, 2**64 - 1), scale=SCALES, seed=st.integers(0, 2**32))
@example(first=0, scale=1.0, seed=0)
@example(first=2 * rounded.CENTRE_FROM, scale=2.0**40, seed=0)
@example(first=2 * rounded.CENTRE_FROM - 2, scale=2.0**40, seed=0)
@settings(max_examples=150, deadline=None)
def test_the_fast_path_equals_the_exact_path(name, first, scale, seed):
    assert drawn_from(name, first, scale, seed) == exactly(name, first, scale, seed)


@both
@given(
    scale=st.floats(-2, 45).map(lambda exponent: 2.0**exponent),
    quantile=st.floats(0, 6),
    offset=st.integers(-3, 3) | st.integers(-(2**16), 2**16),
    sign=st.integers(0, 1),
)
@settings(max_examples=150, deadline=None)
def test_the_paths_are_equal_beside_half_integers(name, scale, quantile, offset, sign):
    with mpmath.workprec(200):
        limit = threshold(name, math.floor(quantile * scale), scale)
        word = int(limit * mpmath.mpf(2) ** 63) + offset
    first = min(max(word, 0), 2**63 - 1) << 1 | sign
    assert drawn_from(name, first, scale, 5) == exactly(name, first, scale, 5)


@both
@given(t=st.fractions(0, 12, max_denominator=10**6), bits=st.integers(60, 300))
@settings(max_examples=100, deadline=None)
def test_exceedance_probabilities_are_enclosed_tightly(name, t, bits):
    low, high = LAWS[name].exceedance(t.numerator, t.denominator, bits)
    with mpmath.workprec(800):
        exact = exceedance(name, mpmath.mpf(t.numerator) / t.denominator) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
    assert high - low <= 2


def test_magnitudes_of_the_fast_path_are_within_their_bounds():
    """Both ends of the interval of a word, 4000 words over all regions, against mpmath."""
    rng = np.random.default_rng(6)
    words = np.concatenate(
        [
            rng.integers(0, 2**63, 2000),
            (2.0 ** rng.uniform(48, 63, 2000)).astype(np.int64),
            [2**48, rounded.CENTRE_FROM - 1, rounded.CENTRE_FROM, 2**63 - 1],
        ]
    )
    for name, law in LAWS.items():
        values, errors = law.magnitude(words)
        with mpmath.workprec(200):
            for word, value, error in zip(words.tolist(), values, errors, strict=True):
                for v in (word, word + 1) if word + 1 < 2**63 else (word,):
                    exact = magnitude_of(name, mpmath.mpf(v) / 2**63)
                    assert abs(exact - mpmath.mpf(value.item())) < error


@both
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_no_output_rules_out_a_neighbouring_count(name, scale):
    """Every integer has its bits, so a count S and its neighbour S + 1 have the same outputs."""
    with mpmath.workprec(3000):
        for n in range(25):
            below = threshold(name, n, scale)
            above = threshold(name, n - 1, scale) if n else mpmath.mpf(1)
            words = int(-mpmath.log(above - below, 2)) // 64 + 2
            for negative in (False, True):
                source = Stream(words_of((below + above) / 2, words, negative))
                drawn = SAMPLERS[name](source, (1,), scale).item()
                assert drawn == (-n if negative else n)


def test_float_noise_rules_out_a_neighbouring_count():
    """What rounded noise replaces: noise in float64 tells a count of 0 from a count of 1.

    1 + z is exact for z in [−3/2, −1/2] and a multiple of 2^-53, as z is. An output of absolute
    value below 1/2 that is no such multiple comes from the count 0 alone.
    """
    bits = np.frombuffer(SeededEntropy(3).bytes(8 * 10_000), np.uint64) >> np.uint64(11)
    z = ndtri((bits.astype(np.float64) + 0.5) * 2.0**-53)

    def possible_for_one(outputs):
        near = np.abs(outputs) < 0.5
        return ~near | (outputs * 2.0**53 % 1 == 0)

    assert possible_for_one(1 + z).all()
    assert np.mean(possible_for_one(0 + z)) < 0.85


@both
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, -math.inf, 2.0**50 * 1.01])
def test_a_scale_out_of_range_is_refused(name, scale):
    with pytest.raises(ValueError, match="scale of rounded noise"):
        SAMPLERS[name](SeededEntropy(0), (3,), scale)


@both
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 3)])
def test_shapes_and_types(name, shape):
    drawn = SAMPLERS[name](SeededEntropy(0), shape, 100.0)
    assert drawn.shape == shape
    assert drawn.dtype == np.int64


@both
def test_the_same_seed_gives_the_same_noise_at_any_size_of_chunk(name, monkeypatch):
    one = SAMPLERS[name](SeededEntropy(7), (3000,), 2.0**46)  # many draws take the exact path
    monkeypatch.setattr(rounded, "CHUNK", 100)
    np.testing.assert_array_equal(one, SAMPLERS[name](SeededEntropy(7), (3000,), 2.0**46))


@both
def test_eight_bytes_a_number_in_one_call(name):
    calls = []

    class Counted(SeededEntropy):
        def bytes(self, length):
            calls.append(length)
            return super().bytes(length)

    SAMPLERS[name](Counted(8), (100, 100), 1000.0)
    assert calls[0] == 80_000
    assert set(calls[1:]) <= {8}
    assert len(calls) < 10


@both
def test_few_draws_take_the_exact_path(name, monkeypatch):
    """At a scale of 2^30: about 40 in a million of Gaussian noise, 130 of Laplace noise."""
    calls, exact = [], rounded._exact

    def counted(*arguments, **named):
        calls.append(arguments)
        return exact(*arguments, **named)

    monkeypatch.setattr(rounded, "_exact", counted)
    SAMPLERS[name](SeededEntropy(9), (200_000,), 2.0**30)
    assert 0 < len(calls) < 60
