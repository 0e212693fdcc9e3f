"""Noise: its law, its source, and that nothing unclipped can be noised.

Statistical tests use fixed seeds, so they cannot fail by chance; the bounds are those that fresh
noise would exceed with the probability stated.
"""

import numpy as np
import pytest
from scipy import stats

from limbeck.privacy import clipping
from limbeck.privacy.budget import Adjacency
from limbeck.privacy.clipping import ROUNDING, Bounded, Clip
from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger
from limbeck.privacy.noise import (
    SeededEntropy,
    SystemEntropy,
    entropy,
    gaussian,
    laplace,
    standard_laplace,
    standard_normal,
)


def ledger(noise_multiplier=2.0, draws=10):
    plan = [Entry(purpose="sum", draws=draws, noise_multiplier=noise_multiplier)]
    return Ledger(plan)


def test_noise_is_standard_normal():
    drawn = standard_normal(SeededEntropy(1), (200_000,))
    assert stats.kstest(drawn, "norm").pvalue > 1e-3  # fails by chance once in a thousand seeds


def test_noise_is_independent_from_draw_to_draw():
    source = SeededEntropy(2)
    first, second = (standard_normal(source, (100_000,)) for _ in range(2))
    assert not np.any(first == second)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(100_000)  # 4 sigma: 6e-5


def test_noise_is_finite_and_symmetric_at_the_extreme_bits():
    class Fixed:
        seeded = True

        def __init__(self, word):
            self.word = word

        def bytes(self, length):
            return self.word.to_bytes(8, "little") * (length // 8)

    low, high, middle, other = (
        standard_normal(Fixed(word), (1,))[0] for word in (0, 1, 2**64 - 2, 2**64 - 1)
    )
    assert -9 < low < -8
    assert high == -low
    assert abs(middle) < 1e-15
    assert other == -middle


def test_the_default_source_is_the_operating_system():
    assert isinstance(entropy(), SystemEntropy)
    assert not entropy().seeded
    assert entropy(3).seeded
    one, two = (standard_normal(entropy(), (8,)) for _ in range(2))
    assert not np.any(one == two)


def test_the_same_seed_gives_the_same_noise():
    one, two = (standard_normal(entropy(7), (8,)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_the_deviation_is_the_multiplier_times_the_norm_of_a_record():
    bounded = Clip(bound=0.5).bounded(np.zeros(100_000))
    noisy = gaussian(bounded, purpose="sum", ledger=ledger(2.0), entropy=SeededEntropy(4))
    expected = 2.0 * 0.5 * (1 + ROUNDING)
    assert np.std(noisy) == pytest.approx(expected, rel=4 / np.sqrt(2 * 100_000))  # 4 sigma


def test_each_draw_is_charged_even_if_it_fails_afterwards():
    class Broken:
        seeded = True

        def bytes(self, length):
            raise OSError("no entropy")

    book = ledger()
    with pytest.raises(OSError, match="no entropy"):
        gaussian(Clip().bounded(np.zeros(1)), purpose="sum", ledger=book, entropy=Broken())
    assert book.draws == 1


def test_only_something_bounded_can_be_noised():
    with pytest.raises(TypeError, match="only a Bounded"):
        gaussian(np.zeros(3), purpose="sum", ledger=ledger(), entropy=entropy(0))
    with pytest.raises(TypeError, match=r"limbeck\.privacy\.clipping"):
        Bounded(np.zeros(3), 1.0, 1.0, made=None)


def test_sensitivity_is_a_function_of_the_adjacency():
    bounded = Clip(bound=1.0).bounded(np.zeros(3))
    assert bounded.l2_sensitivity(Adjacency.REPLACE) == 2 * bounded.record_norm
    assert bounded.l2_sensitivity(Adjacency.ADD_REMOVE) == bounded.record_norm


def test_a_record_counts_for_one():
    assert clipping.count(5).value - clipping.count(4).value == clipping.count(4).record_norm


def test_clipping_leaves_short_vectors_and_normalising_does_not():
    norms = np.array([0.0, 0.5, 4.0], np.float32)
    np.testing.assert_allclose(Clip(bound=1.0).factors(norms) * norms, [0, 0.5, 1])
    np.testing.assert_allclose(Clip().factors(norms) * norms, [0, 1, 1])


@pytest.mark.parametrize("clip", [Clip(), Clip(bound=1.0)], ids=["normalised", "clipped"])
def test_a_contribution_whose_norm_is_not_known_is_left_out(clip):
    assert not clip.factors(np.array([np.nan, np.inf])).any()


def test_laplace_noise_has_its_distribution_and_is_finite():
    drawn = standard_laplace(SeededEntropy(1), (200_000,))
    assert stats.kstest(drawn, "laplace").pvalue > 1e-3  # fails by chance once in a thousand seeds
    assert np.isfinite(drawn).all()


def test_laplace_noise_is_planned_as_such_and_scaled_to_the_l1_norm():
    plan = [Entry(purpose="sum", draws=2, noise_multiplier=3.0, mechanism="laplace")]
    counts = clipping.histograms(np.zeros((1, 50_000)), 1)  # one record, in so many histograms
    book = Ledger(plan)
    noisy = laplace(counts, purpose="sum", ledger=book, entropy=SeededEntropy(2))
    assert np.mean(np.abs(noisy - 1)) == pytest.approx(3.0 * 50_000, rel=4 / np.sqrt(50_000))
    with pytest.raises(BudgetSpentError):
        gaussian(counts, purpose="sum", ledger=book, entropy=SeededEntropy(2))
    with pytest.raises(BudgetSpentError):
        laplace(counts, purpose="sum", ledger=ledger(), entropy=SeededEntropy(2))
    with pytest.raises(TypeError, match="L1"):
        laplace(Clip().bounded(np.zeros(2)), purpose="sum", ledger=book, entropy=SeededEntropy(2))
    assert book.draws == 1


def test_a_voter_moves_counts_by_the_root_of_two_and_the_largest_by_one():
    """For every query; also a vote that is none of the bins counts once."""
    rng = np.random.default_rng(3)
    votes = rng.integers(0, 4, (30, 50)).astype(np.uint8)
    for change in (0, 3, 255, *rng.integers(0, 4, (20, 50)).astype(np.uint8)):
        other = votes.copy()
        other[7] = change
        for tally in (clipping.count_votes, clipping.most_votes):
            one, two = tally(votes, 4), tally(other, 4)
            moved = np.linalg.norm(one.value - two.value)
            assert moved <= one.l2_sensitivity(Adjacency.ADD_REMOVE) + 1e-9
        assert clipping.count_votes(other, 4).value.sum() == 30 * 50
    all_changed = (votes + 1) % 4
    all_changed[:7], all_changed[8:] = votes[:7], votes[8:]
    moved = clipping.count_votes(votes, 4).value - clipping.count_votes(all_changed, 4).value
    assert np.linalg.norm(moved) == pytest.approx(np.sqrt(2 * 50))  # the bound is reached
