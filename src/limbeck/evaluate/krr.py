"""Kernel ridge regression on the points, tested on real records."""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from limbeck.bundle import Bundle
from limbeck.data.source import Source
from limbeck.evaluate.records import Score
from limbeck.progress import Progress, silent


def evaluate(bundle: Bundle, test: Source, progress: Progress = silent) -> list[Score]:
    """Accuracy, balanced accuracy and, for two classes, the area under the ROC curve."""
    ridge = bundle.classifier().ridge
    scores, labels, done = [], [], 0
    for x, y in test.batches():
        progress("score", done, 0)
        scores.append(ridge.scores(x))
        labels.append(y)
        done += len(y)
    return _metrics(np.concatenate(scores), np.concatenate(labels))


def _metrics(scores: NDArray[np.floating], labels: NDArray[np.integer]) -> list[Score]:
    right = scores.argmax(axis=1) == labels
    recalls = [np.mean(right[labels == label]) for label in np.unique(labels)]
    found = {"accuracy": float(np.mean(right)), "balanced_accuracy": float(np.mean(recalls))}
    if scores.shape[1] == 2 and len(np.unique(labels)) == 2:
        found["roc_auc"] = float(roc_auc_score(labels, scores[:, 1] - scores[:, 0]))
    return [Score("krr", metric, value) for metric, value in found.items()]
