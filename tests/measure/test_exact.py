"""KIP's gradient from two sums over the records is the gradient over the records."""

import copy
import pickle

import numpy as np
import pytest

import limbeck
from limbeck.data.schema import ImageShape, Schema
from limbeck.distill.kip import regression_for
from limbeck.measure.exact import ExactReadoutGradient
from limbeck.measure.gradients import GRADIENT
from limbeck.measure.records import ReadoutRecords
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Entry, Ledger

SCHEMA = Schema(classes=(0, 1, 2), image=ImageShape(8, 8))


@pytest.fixture(scope="module")
def oracles():
    """The sufficient statistics, the records themselves, and a readout."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (70, 8, 8)), rng.integers(0, 3, 70)
    private = limbeck.PrivateData.from_arrays(x, y, SCHEMA)
    problem = regression_for(limbeck.KIP(per_class=1, features="scatter"), SCHEMA)
    ledger = Ledger([Entry(purpose=GRADIENT, draws=10, noise_multiplier=None)])
    readout = rng.normal(size=(problem.kernel.size, 3))
    return ExactReadoutGradient(private, problem, ledger), ReadoutRecords(private, problem), readout


def test_the_statistics_give_the_mean_gradient_of_the_records(oracles):
    exact, records, readout = oracles
    expected = records.clipped_sum(readout, np.arange(70), Clip(bound=np.inf)) / 70
    np.testing.assert_allclose(exact(readout), expected, rtol=1e-3, atol=1e-5)


def test_solved_labels_leave_no_slope(oracles):
    """The loss of W = R Y over Y is least where Rᵀ ∂loss/∂W is zero."""
    exact, _, _ = oracles
    readouts = np.linalg.qr(np.random.default_rng(1).normal(size=(exact._a.shape[0], 4)))[0]
    slope = readouts.T @ exact(readouts @ exact.solved_labels(readouts))
    start = readouts.T @ exact(np.zeros((len(readouts), 3)))
    assert np.abs(slope).max() < 1e-3 * np.abs(start).max()


def test_each_use_is_written_down(oracles):
    exact, _, readout = oracles
    before = exact._ledger.entries[0].draws
    exact(readout)
    assert exact._ledger.entries[0].draws == before + 1


def test_nothing_private_shows_or_can_be_copied(oracles):
    exact, records, _ = oracles
    assert repr(exact) == "ExactReadoutGradient(...)"
    assert repr(records) == "ReadoutRecords(...)"
    for holder in (exact, records, exact._ledger):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="neither copied nor pickled"):
                duplicate(holder)


def test_progress_does_not_tell_how_many_rows_there_are():
    x, y = np.zeros((5000, 8, 8), int), np.zeros(5000, int)
    seen = []
    private = limbeck.PrivateData.from_arrays(x, y, SCHEMA)
    problem = regression_for(limbeck.KIP(per_class=1, features="scatter"), SCHEMA)
    ReadoutRecords(private, problem, lambda *stage: seen.append(stage))
    assert set(seen) == {("features", 0, 0)}
