"""Kernel ridge regression on the points, tested on real records: what the points were made for."""

import numpy as np
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.evaluate.metrics import of_scores
from limbeck.evaluate.score import Score
from limbeck.evaluate.task import Rows, Task
from limbeck.features.base import FeatureMap, features_of
from limbeck.models.ridge import KernelRidge
from limbeck.release.bundle import Distilled

# Real records go through their features, if these are so few; else so many of them are points.
MOST_FEATURES = 4096
MOST_POINTS = 2000
PIECE = 4096


def evaluate(task: Task) -> list[Score]:
    """The scores of the points, and those of real records with the same kernel."""
    if not isinstance(task.bundle, Distilled):
        raise UserError("krr needs a kernel, which generated records lack; use --with logreg,mlp")
    ridge = task.bundle.classifier().ridge
    x, y = task.test_rows
    predicted: list[NDArray[np.float32]] = []
    for piece in _pieces(x):
        task.progress("score", len(predicted) * PIECE, len(x))
        predicted.append(ridge.scores(piece))
    scores = of_scores("krr", np.concatenate(predicted), y, records=len(task.bundle.points))
    if task.real_rows is not None:
        scores += _real(task, ridge, task.real_rows)
    return scores


def _real(task: Task, ridge: KernelRidge, real: Rows) -> list[Score]:
    """Ridge regression on the features of real records, or on the kernel of some of them."""
    labels = np.eye(task.classes)[real.y] - 1 / task.classes
    if isinstance(ridge.kernel, FeatureMap) and ridge.kernel.size <= MOST_FEATURES:
        readout = _readout(task, ridge, real.x, labels)
        scores = np.concatenate(
            [_features(ridge, x) @ readout for x in _pieces(task.test_rows.x)], axis=0
        )
        return of_scores("krr", scores, task.test_rows.y, "real", len(real.y))
    chosen = np.random.default_rng(task.seed).permutation(len(real.y))[:MOST_POINTS]
    points = ridge.inputs.to_support(ridge.inputs.from_records(real.x[chosen]))
    same = KernelRidge(ridge.kernel, ridge.inputs, points, labels[chosen], ridge.regularisation)
    return of_scores("krr", same.scores(task.test_rows.x), task.test_rows.y, "real", len(chosen))


def _readout(
    task: Task, ridge: KernelRidge, x: NDArray[np.float32], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(ΦᵀΦ + λ tr(ΦᵀΦ)/n · I)⁻¹ ΦᵀY: the ridge of the kernel matrix of all these records."""
    phi = ridge.kernel
    assert isinstance(phi, FeatureMap)
    second, first = np.zeros((phi.size, phi.size)), np.zeros((phi.size, y.shape[1]))
    for start in range(0, len(x), PIECE):
        task.progress("real", start, len(x))
        features = _features(ridge, x[start : start + PIECE])
        second += features.T @ features
        first += features.T @ y[start : start + PIECE]
    shift = ridge.regularisation * np.trace(second) / len(x)
    return np.linalg.solve(second + shift * np.eye(phi.size), first)


def _features(ridge: KernelRidge, x: NDArray[np.floating]) -> NDArray[np.float32]:
    assert isinstance(ridge.kernel, FeatureMap)
    return features_of(ridge.kernel, np.asarray(ridge.inputs.from_records(x), np.float32))


def _pieces(x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return [x[start : start + PIECE] for start in range(0, len(x), PIECE)]
