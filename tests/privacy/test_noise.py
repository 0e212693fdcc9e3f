"""Noise: its source, its scale, and that only bounded sums can be noised.

Statistical tests use fixed seeds, so they cannot fail by chance; the bounds are those that fresh
noise would exceed with the probability stated. The law of rounded noise is in test_rounded.py.
"""

import numpy as np
import pytest
from scipy import stats

from limbeck.measure.contributions.closed_form import ClosedForm
from limbeck.measure.contributions.counts import ClassCounts, Histograms
from limbeck.privacy.bounded import LARGEST, Bounded
from limbeck.privacy.budget import Adjacency, Budget, Measurement
from limbeck.privacy.clipping import ROUNDING, Clip
from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger
from limbeck.privacy.noise import (
    SeededEntropy,
    SystemEntropy,
    entropy,
    gaussian,
    laplace,
    standard_normal,
)
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run


def ledger(noise_multiplier=2.0, draws=10):
    return Ledger([Entry(purpose="sum", draws=draws, noise_multiplier=noise_multiplier)])


def test_noise_is_standard_normal():
    drawn = standard_normal(SeededEntropy(1), (200_000,))
    assert stats.kstest(drawn, "norm").pvalue > 1e-3  # fails by chance once in a thousand seeds


def test_noise_is_independent_from_draw_to_draw():
    source = SeededEntropy(2)
    first, second = (standard_normal(source, (100_000,)) for _ in range(2))
    assert not np.any(first == second)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(100_000)  # 4 sigma: 6e-5


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
    bounded = Bounded(np.zeros(100_000), ClosedForm(Clip(bound=0.5)))
    noisy = gaussian(bounded, purpose="sum", ledger=ledger(2.0), entropy=SeededEntropy(4))
    expected = 2.0 * 0.5 * (1 + ROUNDING)
    assert np.std(noisy) == pytest.approx(expected, rel=4 / np.sqrt(2 * 100_000))  # 4 sigma


def test_noisy_sums_lie_on_the_grid():
    contribution = ClosedForm(Clip(bound=0.3))
    bounded = Bounded(np.linspace(0, 1e6, 1000) + 0.123, contribution)
    noisy = gaussian(bounded, purpose="sum", ledger=ledger(), entropy=SeededEntropy(4))
    np.testing.assert_array_equal(noisy, np.rint(noisy / contribution.grid) * contribution.grid)
    counts = Bounded(np.array([3, 4]), ClassCounts(2))
    noisy = gaussian(counts, purpose="sum", ledger=ledger(), entropy=SeededEntropy(4))
    np.testing.assert_array_equal(noisy, np.rint(noisy))


def test_each_draw_is_charged_even_if_it_fails_afterwards():
    class Broken:
        seeded = True

        def bytes(self, length):
            raise OSError("no entropy")

    book = ledger()
    with pytest.raises(OSError, match="no entropy"):
        gaussian(Bounded(np.zeros(1), ClassCounts(1)), purpose="sum", ledger=book, entropy=Broken())
    assert book.draws == 1


def test_only_something_bounded_can_be_noised():
    with pytest.raises((TypeError, AttributeError)):
        gaussian(np.zeros(3), purpose="sum", ledger=ledger(), entropy=entropy(0))
    with pytest.raises(ValueError, match="finite, positive bound"):
        Bounded(np.zeros(3), ClosedForm(Clip(bound=np.inf)))


def test_a_sum_that_is_no_number_is_noised_like_any_other():
    """Whether there is an answer must not depend on the records."""
    total = np.array([np.nan, np.inf, -np.inf, 1e300])
    bounded = Bounded(total, ClosedForm(Clip()))
    assert bounded.value.tolist() == [0, LARGEST, -LARGEST, LARGEST]
    noisy = gaussian(bounded, purpose="sum", ledger=ledger(), entropy=SeededEntropy(0))
    assert np.isfinite(noisy).all()


def test_sensitivity_is_a_function_of_the_adjacency():
    bounded = Bounded(np.zeros(3), ClosedForm(Clip(bound=1.0)))
    assert bounded.l2_sensitivity(Adjacency.REPLACE) == 2 * bounded.l2_bound
    assert bounded.l2_sensitivity(Adjacency.ADD_REMOVE) == bounded.l2_bound


def test_clipping_leaves_short_vectors_and_normalising_does_not():
    norms = np.array([0.0, 0.5, 4.0])
    for factors in (Clip.factors, Clip.factors_of):
        np.testing.assert_allclose(factors(Clip(bound=1.0), norms) * norms, [0, 0.5, 1])
        np.testing.assert_allclose(factors(Clip(), norms) * norms, [0, 1, 1])


@pytest.mark.parametrize("clip", [Clip(), Clip(bound=1.0)], ids=["normalised", "clipped"])
def test_a_contribution_whose_norm_is_not_known_is_left_out(clip):
    assert not clip.factors(np.array([np.nan, np.inf])).any()
    assert not clip.factors_of(np.array([np.nan, np.inf])).any()


def test_laplace_noise_is_planned_as_such_and_scaled_to_the_l1_norm():
    book = Ledger([Entry(purpose="sum", draws=2, noise_multiplier=3.0, mechanism="laplace")])
    columns = 2000
    histograms = Histograms(tuple(range(columns)), ((),) * columns)  # of one bin each
    counts = Bounded(np.ones((columns, 1), np.int64), histograms)
    noisy = laplace(counts, purpose="sum", ledger=book, entropy=SeededEntropy(2))
    assert np.mean(np.abs(noisy - 1)) == pytest.approx(3.0 * columns, rel=4 / np.sqrt(columns))
    with pytest.raises(BudgetSpentError):
        gaussian(counts, purpose="sum", ledger=book, entropy=SeededEntropy(2))
    with pytest.raises(BudgetSpentError):
        laplace(counts, purpose="sum", ledger=ledger(), entropy=SeededEntropy(2))
    closed_form = Bounded(np.zeros(2), ClosedForm(Clip()))
    with pytest.raises(TypeError, match="L1"):
        laplace(closed_form, purpose="sum", ledger=book, entropy=SeededEntropy(2))


def test_a_run_without_a_budget_measures_exactly_and_says_so():
    class Ten:
        def total(self, contribution, public, sample):
            return np.array([10])

    plan = Plan(settled=(Entry(purpose="sum", draws=1, noise_multiplier=None),))
    run = Run(plan, None, seed=0)
    assert run.sum(Ten(), ClassCounts(1), purpose="sum").tolist() == [10]
    assert run.noise_multiplier("sum") == np.inf
    with pytest.raises(BudgetSpentError):
        run.sum(Ten(), ClassCounts(1), purpose="sum")
    assert "nothing was written" in str(run.interrupted())


def test_a_plan_is_calibrated_as_a_whole_and_an_interrupt_tells_what_was_spent():
    plan = Plan(measurements=(Measurement(purpose="a", draws=2), Measurement(purpose="b")))
    run = Run(plan, Budget(epsilon=1.0), seed=0)
    assert run.noise_multiplier("a") > run.noise_multiplier("b")
    run.ledger.charge("b")
    assert "1 of 3 draws" in str(run.interrupted())


def test_a_run_that_does_not_fit_into_memory_is_refused_with_advice():
    from limbeck.errors import UserError

    with pytest.raises(UserError, match="use fewer teachers"):
        Needs(memory=1e18, advice="use fewer teachers").check()
    Needs().check()
