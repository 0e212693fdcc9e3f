"""A private readout by noisy descent: what it gathers of noise, and what it comes to."""

import numpy as np
import pytest

from limbeck.models.softmax import GATHERED_NOISE, NoisyDescent, learn, readout_rate

CLASSES, SIZE = 3, 20


class Noiseless:
    """The exact gradient of synthetic records, and how often it was asked for."""

    def __init__(self, n=600):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(CLASSES, size=n)
        x = rng.normal(size=(CLASSES, SIZE))[self.labels] + rng.normal(size=(n, SIZE))
        self.features = x / np.linalg.norm(x, axis=1, keepdims=True)
        self.asked = []

    def gradient(self, readout, weights):
        self.asked.append(weights)
        scores = self.features @ readout
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        r = p / p.sum(axis=1, keepdims=True) - np.eye(CLASSES)[self.labels]
        return self.features.T @ (weights[self.labels][:, None] * r)


def test_it_comes_to_a_readout_that_tells_the_classes_apart():
    oracle = Noiseless()
    counts = np.bincount(oracle.labels).astype(float)
    found = learn(oracle.gradient, NoisyDescent(steps=40), SIZE, counts, 1.0)
    assert np.mean(np.argmax(oracle.features @ found, axis=1) == oracle.labels) > 0.95
    np.testing.assert_allclose(found.mean(axis=1), 0, atol=1e-12)
    assert np.linalg.norm(found) == pytest.approx(np.sqrt(CLASSES))


def test_every_step_is_one_draw_and_weighs_the_rarest_class_most():
    oracle = Noiseless()
    learn(
        oracle.gradient, NoisyDescent(steps=7, clip=0.3), SIZE, np.array([100.0, 400.0, 900.0]), 1.0
    )
    assert len(oracle.asked) == 7
    for weights in oracle.asked:
        np.testing.assert_allclose(weights, [1, 1 / 2, 1 / 3])


def test_the_rate_gathers_so_much_noise_and_no_more():
    """Plain noise in, as the steps take it: its length at the end is the constant."""
    steps, momentum, rows, once, size = 50, 0.5, 3000.0, 2.0, 400
    rate = readout_rate(steps, momentum, rows, once, size)
    rng, w, velocity = np.random.default_rng(0), np.zeros(size), np.zeros(size)
    for _ in range(steps):
        gradient = once * np.sqrt(steps) * rng.normal(size=size) / rows
        velocity = momentum * velocity - rate * gradient
        w = w + velocity
    assert np.linalg.norm(w) == pytest.approx(GATHERED_NOISE, rel=0.15)
