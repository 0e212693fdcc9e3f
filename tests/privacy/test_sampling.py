"""Sampling is what Poisson-sampled events assume: each record on its own, each time anew.

Seeds are fixed; each bound is one that a fresh run would exceed with the probability stated.
"""

import numpy as np
import pytest
from scipy import stats

from limbeck.privacy.noise import SeededEntropy
from limbeck.privacy.sampling import Sample, poisson

ROWS, RATE, BATCHES = 400, 0.1, 2000


@pytest.fixture(scope="module")
def taken():
    source = SeededEntropy(0)
    taken = np.zeros((BATCHES, ROWS), bool)
    for batch in taken:
        batch[poisson(source, ROWS, RATE)] = True
    return taken


def test_the_size_of_a_batch_is_binomial(taken):
    sizes = taken.sum(axis=1)
    assert len(np.unique(sizes)) > 20
    observed = np.histogram(sizes, bins=[0, 34, 38, 42, 46, ROWS + 1])[0]
    edges = stats.binom.cdf([33, 37, 41, 45], ROWS, RATE)
    expected = BATCHES * np.diff([0, *edges, 1])
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_every_record_is_drawn_equally_often(taken):
    counts = taken.sum(axis=0)
    p_value = stats.chisquare(counts, np.full(ROWS, counts.mean())).pvalue
    assert p_value > 1e-3


def test_records_are_drawn_independently_of_each_other(taken):
    """Slices of a permutation would make the presence of one record speak against the next."""
    correlations = np.corrcoef(taken.T.astype(float))[np.triu_indices(ROWS, 1)]
    assert abs(correlations.mean()) < 4 / np.sqrt(BATCHES * len(correlations))
    assert np.std(correlations) == pytest.approx(1 / np.sqrt(BATCHES), rel=0.05)


def test_batches_are_drawn_independently_of_earlier_ones(taken):
    correlation = np.corrcoef(taken[:-1].ravel(), taken[1:].ravel())[0, 1]
    assert abs(correlation) < 4 / np.sqrt(taken[1:].size)


def test_a_rate_of_one_takes_all():
    np.testing.assert_array_equal(poisson(SeededEntropy(0), 5, 1.0), np.arange(5))


def test_a_batch_may_be_empty():
    batch = poisson(SeededEntropy(0), 10, 1e-9)
    assert len(batch) == 0


def test_a_sample_of_parts_is_one_of_the_whole():
    """Each part is drawn for itself, so it does not matter how records are cut into parts."""
    source = SeededEntropy(1)
    sizes = [sum(len(Sample(source, RATE).of(n)) for n in (100, 250, 50)) for _ in range(BATCHES)]
    assert np.mean(sizes) == pytest.approx(RATE * ROWS, abs=4 * np.sqrt(RATE * ROWS / BATCHES))
    assert np.var(sizes) == pytest.approx(RATE * (1 - RATE) * ROWS, rel=0.2)
    assert Sample(source, 1.0).of(5) is None
