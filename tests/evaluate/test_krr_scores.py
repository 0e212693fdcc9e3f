"""The scores of kernel ridge regression are those of their definitions."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from limbeck.evaluate.krr import _metrics


def found(scores, labels):
    return {score.metric: score.value for score in _metrics(np.asarray(scores), np.asarray(labels))}


def test_accuracy_and_balanced_accuracy():
    scores = found([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 1, 1])
    assert scores["accuracy"] == 0.75
    assert scores["balanced_accuracy"] == 0.75
    assert "roc_auc" not in scores


def test_two_classes_also_have_a_roc_curve():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    expected = roc_auc_score(labels, scores[:, 1] - scores[:, 0])
    assert found(scores, labels)["roc_auc"] == pytest.approx(expected)


def test_one_class_in_the_test_rows_has_no_roc_curve():
    assert "roc_auc" not in found([[1.0, 0.0], [0.0, 1.0]], [1, 1])
