"""Gradients of a readout: sums that are those of the definition, and a private readout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.data.schema import ImageShape, Schema
from limbeck.features.inputs import inputs_of
from limbeck.features.scattering import Scattering
from limbeck.measure.contributions import outer
from limbeck.measure.contributions.counts import CLASS_COUNTS, ClassCounts
from limbeck.measure.contributions.readout import GRADIENT, Readout, ReadoutGradient
from limbeck.measure.readout import learn_readout
from limbeck.measure.rows import Block, read
from limbeck.models.softmax import NoisyDescent
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import BudgetSpentError
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run

CLASSES, SIZE = 3, 12


def records(n=64, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, SIZE))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, rng.integers(CLASSES, size=n)


def total(contribution, features, labels, w, weights=None):
    """In real units."""
    weights = np.ones(CLASSES) if weights is None else weights
    block = Block(outer.codes(features), labels.astype(np.int32), np.ones(len(labels), bool))
    return contribution(Readout(w, weights), block) * contribution.grid


LOSSES = {
    "softmax": lambda w, phi, label: -jax.nn.log_softmax(phi @ w)[label],
    "ridge": lambda w, phi, label: (
        0.5 * jnp.sum((jnp.eye(CLASSES)[label] - 1 / CLASSES - phi @ w) ** 2)
    ),
}


@pytest.mark.parametrize("bound", [0.1, 0.5, 10.0, None])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_sum_is_that_of_clipped_gradients_of_the_loss(loss, bound):
    """But for 15 bits: each of 64 records is within 2⁻¹³ of its own length, and of the clip's."""
    features, labels = records()
    w, weights = np.random.default_rng(1).normal(size=(SIZE, CLASSES)), np.array([1.0, 0.5, 0.1])
    with jax.enable_x64(True):
        gradient = jax.vmap(jax.grad(LOSSES[loss]), (None, 0, 0))
        gradients = np.asarray(gradient(jnp.asarray(w), jnp.asarray(features), labels))
    norms = np.linalg.norm(gradients, axis=(1, 2))
    clip = Clip(bound=bound)
    factors = clip.factors_of(norms) * weights[labels]
    expected = np.einsum("l,lfc->fc", factors, gradients)
    found = total(ReadoutGradient(loss, clip), features, labels, w, weights)
    assert np.abs(found - expected).max() < 64 * (bound or 1.0) * 2.0**-13


def test_the_last_bits_of_weights_do_not_depend_on_the_block():
    """Predictions are exact products, the same for a record alone and among others."""
    features, _ = records(300)
    phi, w = outer.codes(features).astype(np.float64), np.random.default_rng(1).normal(size=(12, 3))
    whole = outer.predictions(phi, w)
    for size in (1, 7, 64):
        parts = [outer.predictions(phi[i : i + size], w) for i in range(0, 300, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_allclose(whole, features @ w, atol=1e-3)


IMAGES = Schema(classes=(0, 1, 2), image=ImageShape(8, 8))


def opened(n=60):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    x = np.clip(rng.normal(100, 30, (3, 8, 8))[y] + rng.normal(0, 30, (n, 8, 8)), 0, 255)
    return limbeck.PrivateData.from_arrays(x.astype(int), y, IMAGES), x, y


def run_of(steps, epsilon=1e4, progress=None):
    plan = Plan(
        measurements=(
            Measurement(purpose=GRADIENT, draws=steps),
            Measurement(purpose=CLASS_COUNTS),
        )
    )
    extra = {"progress": progress} if progress else {}
    return Run(plan, Budget(epsilon=epsilon, delta=1e-5), seed=0, **extra)


def test_a_readout_tells_the_classes_apart_and_spends_its_draws():
    private, _, y = opened(2000)
    run, phi = run_of(30, epsilon=50.0), Scattering(shape=(8, 8, 1))
    rows = read(private, run)
    counts = run.sum(rows, ClassCounts(3), purpose=CLASS_COUNTS)
    np.testing.assert_allclose(counts, np.bincount(y), atol=3)
    readout = learn_readout(run, rows, phi, inputs_of(IMAGES), NoisyDescent(steps=30), counts)
    assert readout.shape == (phi.size, 3)
    assert run.ledger.draws == 31
    encoded = next(iter(private.reveal()))[0]
    predicted = np.argmax(phi(inputs_of(IMAGES).from_records(encoded)) @ readout, axis=1)
    assert np.mean(predicted == y[: len(predicted)]) > 0.9


def test_a_draw_beyond_the_plan_is_refused():
    private, _, _ = opened()
    run = run_of(1)
    run.sum(read(private, run), ClassCounts(3), purpose=CLASS_COUNTS)
    with pytest.raises(BudgetSpentError):
        run.sum(read(private, run), ClassCounts(3), purpose=CLASS_COUNTS)


def test_nothing_can_be_read_off_rows_or_copied():
    private, _, _ = opened()
    run = run_of(1)
    rows = read(private, run)
    assert repr(rows) == "Rows(...)"
    for held in (rows, run, run.ledger):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            held.__reduce__()


def test_progress_does_not_tell_how_many_rows_there_are():
    told = []
    private, _, _ = opened()
    run = run_of(1, progress=lambda *what: told.append(what))
    read(private, run).kept()
    assert {stage for stage, _, _ in told} == {"read"}
    assert all((done, whole) == (0, 0) for _, done, whole in told)
