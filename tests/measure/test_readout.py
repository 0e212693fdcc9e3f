"""The noisy readout: sums that are those of the definition, and bounds that hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from limbeck.measure.feature_gradients import Records

import limbeck
from limbeck.data.schema import ImageShape, Schema
from limbeck.features.inputs import inputs_of
from limbeck.features.scattering import Scattering
from limbeck.measure.readout import BINS, COUNTS, GRADIENT, HISTOGRAMS, NoisyReadout, clipped_sum
from limbeck.privacy.clipping import Clip, histograms
from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger
from limbeck.privacy.noise import entropy

CLASSES, SIZE = 3, 12


def records(n=64, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, SIZE)).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, rng.integers(CLASSES, size=n)


def total(features, labels, w, bound=0.5, weights=None, mask=None):
    mask = np.ones(len(labels), bool) if mask is None else mask
    weights = np.ones(CLASSES) if weights is None else weights
    with jax.enable_x64(True):
        given = Records(
            jnp.asarray(features), jnp.asarray(np.eye(CLASSES)[labels]), jnp.asarray(mask)
        )
        return np.asarray(
            clipped_sum(Clip(bound=bound), jnp.asarray(w), jnp.asarray(weights), given)
        )


@pytest.mark.parametrize("bound", [0.1, 0.5, 10.0])
def test_the_sum_is_that_of_clipped_gradients_of_the_cross_entropy(bound):
    features, labels = records()
    w, weights = np.random.default_rng(1).normal(size=(SIZE, CLASSES)), np.array([1.0, 0.5, 0.1])
    with jax.enable_x64(True):

        def loss(w, phi, label):
            return -jax.nn.log_softmax(phi @ w)[label]

        phi = jnp.asarray(features, jnp.float64)
        gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(jnp.asarray(w), phi, labels)
        norms = jnp.sqrt(jnp.sum(gradients**2, axis=(1, 2)))
        factors = np.minimum(1, bound / norms) * weights[labels]
        expected = np.einsum("l,lfc->fc", factors, gradients)
    np.testing.assert_allclose(total(features, labels, w, bound, weights), expected, atol=1e-9)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_no_record_moves_the_sum_by_more_than_its_bound(scale):
    features, labels = records()
    w = scale * np.random.default_rng(1).normal(size=(SIZE, CLASSES))
    whole = total(features, labels, w)
    for gone in range(0, 64, 9):
        rest = total(np.delete(features, gone, 0), np.delete(labels, gone), w)
        assert np.linalg.norm(whole - rest) <= Clip(bound=0.5).record_norm


def test_padding_and_features_that_are_no_numbers_count_for_nothing():
    features, labels = records()
    mask = np.arange(64) < 40
    w = np.random.default_rng(1).normal(size=(SIZE, CLASSES))
    expected = total(features[:40], labels[:40], w)
    np.testing.assert_allclose(total(features, labels, w, mask=mask), expected, atol=1e-12)
    features[40:50], features[50:] = np.inf, np.nan
    np.testing.assert_allclose(total(features, labels, w), expected, atol=1e-12)


def test_a_record_counts_once_in_each_histogram():
    bounded = histograms(np.array([[0, 9], [3, -4]]), 4)
    np.testing.assert_array_equal(bounded.value, [[1, 0, 0, 1], [1, 0, 0, 1]])
    assert bounded.record_norm == pytest.approx(np.sqrt(2))


IMAGES = Schema(classes=(0, 1, 2), image=ImageShape(8, 8))


def oracle(noise_multiplier=1e-9, n=2100, draws=2):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (n, 8, 8)), rng.integers(0, 3, n)
    plan = [
        Entry(purpose=purpose, draws=draws, noise_multiplier=noise_multiplier)
        for purpose in (GRADIENT, COUNTS, HISTOGRAMS)
    ]
    private = limbeck.PrivateData.from_arrays(x, y, IMAGES)
    return NoisyReadout(private, ledger=Ledger(plan), entropy=entropy(0)), x, y


def test_counts_and_histograms_are_those_of_the_records():
    found, x, y = oracle()
    np.testing.assert_allclose(found.class_counts(), np.bincount(y), atol=1e-6)
    columns = np.array([0, 17])
    counted = found.histograms(columns)
    assert counted.shape == (2, BINS)
    for counts, column in zip(counted, columns, strict=True):
        expected, _ = np.histogram(x.reshape(len(x), -1)[:, column] / 255, BINS, (0, 1))
        np.testing.assert_allclose(counts, expected, atol=1e-6)


def test_gradients_add_up_over_pieces_whatever_their_size(monkeypatch):
    """2100 records: two whole pieces of 1024 and one with padding; or many small ones."""
    phi, inputs = Scattering(shape=(8, 8, 1)), inputs_of(IMAGES)
    w = np.random.default_rng(1).normal(size=(phi.size, 3))
    sums = []
    for size in (1024, 100):
        monkeypatch.setattr(NoisyReadout, "at_a_time", size)
        found, _, _ = oracle()
        found.look(phi, inputs)
        sums.append(found.gradient(w, np.ones(3), Clip(bound=0.5)))
    np.testing.assert_allclose(*sums, atol=1e-6)
    assert np.linalg.norm(sums[0]) > 10


def test_a_draw_beyond_the_plan_is_refused():
    found, _, _ = oracle(draws=1)
    found.class_counts()
    with pytest.raises(BudgetSpentError):
        found.class_counts()


def test_weights_above_one_are_refused():
    found, _, _ = oracle(n=10)
    found.look(Scattering(shape=(8, 8, 1)), inputs_of(IMAGES))
    with pytest.raises(ValueError, match="longer than their bound"):
        found.gradient(np.zeros((324, 3)), np.array([1.0, 1.1, 1.0]), Clip(bound=0.5))


def test_nothing_can_be_read_off_the_oracle_or_copied():
    found, _, _ = oracle(n=10)
    assert repr(found) == "NoisyReadout(...)"
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        found.__reduce__()
    with pytest.raises(RuntimeError, match="`look` comes before"):
        found.gradient(np.zeros((324, 3)), np.ones(3), Clip(bound=0.5))


def test_rows_that_were_let_go_of_are_not_looked_at_again():
    found, _, _ = oracle(n=10)
    found.look(Scattering(shape=(8, 8, 1)), inputs_of(IMAGES))
    with pytest.raises(RuntimeError, match="once and last"):
        found.look(Scattering(shape=(8, 8, 1)), inputs_of(IMAGES))
    with pytest.raises(RuntimeError, match="once and last"):
        found.histograms(np.array([0]))


def test_progress_does_not_tell_how_many_rows_there_are():
    told = []
    rng = np.random.default_rng(0)
    private = limbeck.PrivateData.from_arrays(
        rng.integers(0, 256, (50, 8, 8)), rng.integers(0, 3, 50), IMAGES
    )
    ledger = Ledger([Entry(purpose=COUNTS, draws=1, noise_multiplier=1.0)])
    found = NoisyReadout(
        private, ledger=ledger, entropy=entropy(0), progress=lambda *what: told.append(what)
    )
    found.look(Scattering(shape=(8, 8, 1)), inputs_of(IMAGES))
    assert {stage for stage, _, _ in told} == {"read", "features"}
    assert all((done, whole) == (0, 0) for _, done, whole in told)
