"""The metrics of a classifier, from its scores and never from its choices where scores matter."""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from limbeck.evaluate.score import Score, TrainedOn


def of_scores(
    evaluator: str,
    scores: NDArray[np.floating],
    labels: NDArray[np.integer],
    trained_on: TrainedOn = "release",
    records: int | None = None,
) -> list[Score]:
    """The metrics of one score a class and record; the largest is the choice.

    For two classes also the areas under the ROC curve and under the precision-recall curve (as the
    average precision), with the second class as the positive one, by the difference of scores; and
    the latter of the choices alone, as some papers have it. Theirs under the ROC curve is then the
    balanced accuracy.
    """
    chosen = scores.argmax(axis=1)
    present = np.unique(labels)
    recalls = [np.mean(chosen[labels == label] == label) for label in present]
    found = {
        "accuracy": float(np.mean(chosen == labels)),
        "balanced_accuracy": float(np.mean(recalls)),
        "f1_macro": float(f1_score(labels, chosen, average="macro", zero_division=0)),
        "f1_weighted": float(f1_score(labels, chosen, average="weighted", zero_division=0)),
    }
    if scores.shape[1] == 2 and len(present) == 2:
        margin = scores[:, 1] - scores[:, 0]
        found["roc_auc"] = float(roc_auc_score(labels, margin))
        found["average_precision"] = float(average_precision_score(labels, margin))
        of_choices = average_precision_score(labels, chosen)
        found["average_precision_of_choices"] = float(of_choices)
    return [Score(evaluator, name, value, trained_on, records) for name, value in found.items()]


def of_the_majority(labels: NDArray[np.integer], majority: int, classes: int) -> list[Score]:
    """Of always saying the same class."""
    scores = np.zeros((len(labels), classes))
    scores[:, majority] = 1
    return of_scores("majority", scores, labels, "majority")
