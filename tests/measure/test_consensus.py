"""Theorem 7, by hand; and that it is no part of what is published."""

import math

import numpy as np
import pytest

from limbeck.measure.consensus import ORDERS, Consensus, chance_of_another, divergence


def by_hand(ahead, sigma, order):
    """Two bins, one ahead of the other by so many votes."""
    q = 0.5 * math.erfc(ahead / (2 * sigma))
    mu2 = sigma * math.sqrt(math.log(1 / q))
    mu1 = mu2 + 1
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    assert order <= mu1
    assert q <= math.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2
    a = (1 - q) / (1 - (q * math.exp(eps2)) ** ((mu2 - 1) / mu2))
    b = math.exp(eps1) / q ** (1 / (mu1 - 1))
    return math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)


@pytest.mark.parametrize(("ahead", "sigma", "order"), [(100, 20, 2), (200, 30, 8), (60, 10, 1.5)])
def test_the_bound_is_that_of_theorem_7(ahead, sigma, order):
    counts = np.array([[10.0 + ahead, 10.0]])
    found = divergence(counts, sigma, np.array([order]))[0, 0]
    assert found == pytest.approx(by_hand(ahead, sigma, order), rel=1e-9)
    assert found < order / sigma**2


def test_numbers_computed_on_paper():
    """Ahead by 2σ√2: q = ½ erfc(√2) = 0.02275, so that others win once in 44 times."""
    counts = np.array([[2 * math.sqrt(2) * 50, 0.0]])
    assert chance_of_another(counts, 50.0)[0] == pytest.approx(0.0227501, abs=1e-6)
    tied = np.array([[7.0, 7.0, 7.0]])
    assert chance_of_another(tied, 50.0)[0] == pytest.approx(2 / 3)
    np.testing.assert_allclose(divergence(tied, 50.0)[0], ORDERS / 2500)


def test_the_more_agree_the_less_it_is_and_never_more_than_without_looking():
    sigma, ahead = 40.0, np.arange(0, 1000, 10)
    counts = np.stack([1000 + ahead, 1000 - ahead], axis=1).astype(float)
    found = divergence(counts, sigma)
    assert np.all(found <= ORDERS / sigma**2 + 1e-15)
    assert np.all(found >= 0)
    assert np.all(np.diff(found, axis=0) <= 1e-12)
    assert found[-1].max() < 1e-6 * ORDERS.max() / sigma**2


def test_steps_add_up_and_unanimous_votes_cost_less_than_the_guarantee():
    agreed, split = Consensus(), Consensus()
    for _ in range(10):
        agreed.add(np.tile([[2000.0, 0.0]], (50, 1)), 100.0)
        split.add(np.tile([[1000.0, 1000.0]], (50, 1)), 100.0)
    assert agreed.epsilon(1e-5) < 0.1 * split.epsilon(1e-5)
    once = Consensus()
    once.add(np.tile([[1000.0, 1000.0]], (500, 1)), 100.0)
    assert once.epsilon(1e-5) == pytest.approx(split.epsilon(1e-5))
    once.add(np.ones((1, 2)), 100.0, 50.0)
    assert once.epsilon(1e-5) > split.epsilon(1e-5)
