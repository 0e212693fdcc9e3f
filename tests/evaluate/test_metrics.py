"""The metrics are those of their definitions."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from limbeck.evaluate.metrics import of_scores, of_the_majority


def values(scores):
    return {score.metric: score.value for score in scores}


def found(scores, labels):
    return values(of_scores("krr", np.asarray(scores, float), np.asarray(labels)))


def test_accuracy_balanced_accuracy_and_f1():
    scores = found([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 0, 1, 1])
    assert scores["accuracy"] == 0.75
    assert scores["balanced_accuracy"] == 0.75
    # Class 0: precision 2/3, recall 1; class 1: precision 1, recall 1/2.
    assert scores["f1_macro"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert "roc_auc" not in scores


def test_f1_weighted_counts_classes_by_their_records():
    scores = found([[1, 0], [1, 0], [1, 0], [1, 0]], [0, 0, 0, 1])
    assert scores["f1_weighted"] == pytest.approx(0.75 * 6 / 7)
    assert scores["f1_macro"] == pytest.approx(0.5 * 6 / 7)


def test_two_classes_also_have_curves():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    margin = scores[:, 1] - scores[:, 0]
    assert found(scores, labels)["roc_auc"] == pytest.approx(roc_auc_score(labels, margin))
    expected = average_precision_score(labels, margin)
    assert found(scores, labels)["average_precision"] == pytest.approx(expected)


def test_one_class_in_the_test_rows_has_no_curves():
    assert "roc_auc" not in found([[1.0, 0.0], [0.0, 1.0]], [1, 1])


def test_the_majority_is_right_as_often_as_its_class_comes():
    scores = values(of_the_majority(np.array([0, 1, 1, 1]), 1, 2))
    assert (scores["accuracy"], scores["balanced_accuracy"]) == (0.75, 0.5)
    assert (scores["roc_auc"], scores["average_precision"]) == (0.5, 0.75)


def test_a_roc_curve_of_choices_has_the_balanced_accuracy_under_it():
    """As papers have it that score choices; their precision-recall curve is of choices, too."""
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    chosen = scores.argmax(axis=1)
    both = found(scores, labels)
    assert both["balanced_accuracy"] == pytest.approx(roc_auc_score(labels, chosen))
    expected = average_precision_score(labels, chosen)
    assert both["average_precision_of_choices"] == pytest.approx(expected)
    assert both["average_precision"] != pytest.approx(expected)
