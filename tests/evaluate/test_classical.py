"""Models of scikit-learn and XGBoost, trained on a release."""

import numpy as np
import pytest
from made_up import TABLE, bundle_of, changed, rows_of, source_of

from limbeck.evaluate import classical
from limbeck.evaluate.task import Task


def by_model(scores, metric, trained_on="release"):
    chosen = [s for s in scores if (s.metric, s.trained_on) == (metric, trained_on)]
    return {score.evaluator: score.value for score in chosen}


@pytest.fixture(scope="module")
def twelve():
    task = Task(
        bundle_of(TABLE, *rows_of(300, 1)),
        source_of(TABLE, *rows_of(300, 2)),
        source_of(TABLE, *rows_of(400, 3)),
    )
    return classical.tabular(task)


def test_all_twelve_learn_what_there_is_to_learn(twelve):
    for trained_on in ("release", "real"):
        areas = by_model(twelve, "roc_auc", trained_on)
        assert len(areas) == 14
        assert min(areas.values()) > 0.75


def test_the_means_are_over_the_classifiers(twelve):
    areas = by_model(twelve, "roc_auc")
    mean, without = areas.pop("mean-of-12"), areas.pop("mean-without-gnb")
    assert mean == pytest.approx(np.mean(list(areas.values())))
    del areas["gaussian-nb"]
    assert without == pytest.approx(np.mean(list(areas.values())))


def test_the_four_of_g_pate(table_task):
    areas = by_model(classical.credit(table_task), "roc_auc")
    assert set(areas) == {"logistic-regression", "adaboost", "bagging", "mlp", "mean-of-4"}
    assert min(areas.values()) > 0.75


def test_a_release_of_one_class_says_that_class(table_task):
    x, _ = rows_of(20, 1)
    alone = changed(table_task, bundle=bundle_of(TABLE, x, np.ones(20, np.int64)), real=None)
    accuracy = by_model(classical.logreg(alone), "accuracy")["logreg"]
    assert accuracy == pytest.approx(np.mean(table_task.test_rows.y))


def test_points_that_are_all_alike_do_not_end_in_an_error(table_task):
    x = np.zeros((4, 5), np.float32)
    alike = changed(table_task, bundle=bundle_of(TABLE, x, np.array([0, 1, 0, 1])), real=None)
    assert by_model(classical.tabular(alike), "balanced_accuracy")["lda"] == 0.5


def test_a_class_that_the_release_lacks_is_never_chosen(picture_task):
    x, y = picture_task.release_rows
    some = bundle_of(picture_task.bundle.schema, x[y < 2], y[y < 2])
    scores = classical.logreg(changed(picture_task, bundle=some, real=None))
    two = picture_task.test_rows.y < 2
    assert by_model(scores, "accuracy")["logreg"] <= np.mean(two)


def test_the_same_seed_gives_the_same_scores(table_task):
    assert classical.mlp(table_task) == classical.mlp(table_task)
