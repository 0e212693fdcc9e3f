"""Sampling is what Poisson-sampled events assume: each record on its own, each time anew.

Seeds are fixed; each bound is one that a fresh run would exceed with the probability stated.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from limbeck.privacy.noise import SeededEntropy
from limbeck.privacy.sampling import pieces, poisson

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
    ((positions, mask),) = pieces(batch, 4)
    assert positions.shape == mask.shape == (4,)
    assert not mask.any()


@given(st.integers(0, 40), st.integers(1, 9))
def test_pieces_have_one_shape_and_cover_the_batch(length, size):
    batch = np.arange(length) * 3
    cut = list(pieces(batch, size))
    assert {(len(positions), len(mask)) for positions, mask in cut} == {(size, size)}
    np.testing.assert_array_equal(np.concatenate([p[m] for p, m in cut]), batch)
