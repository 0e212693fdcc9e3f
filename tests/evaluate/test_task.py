"""What evaluators are given."""

import numpy as np
from made_up import TABLE, bundle_of, changed, rows_of, source_of

from limbeck.evaluate import krr, task
from limbeck.evaluate.task import Task


def test_too_many_real_records_are_drawn_from_at_random(table_task, monkeypatch):
    monkeypatch.setattr(task, "MOST_REAL", 100)
    monkeypatch.setattr(task, "MOST_REAL_FAST", 50)
    some = table_task.real_rows
    assert len(some.y) == 100
    assert len(np.unique(some.x[:, 0])) == 100  # none twice
    assert len(changed(table_task, fast=True).real_rows.y) == 50


def test_a_test_set_is_read_batch_by_batch_to_its_end(table_task):
    assert len(table_task.test_rows.y) == 300


def test_kernel_ridge_on_real_records_has_the_same_ridge_in_features_as_on_the_kernel(monkeypatch):
    x, y = rows_of(80, 3)
    both = Task(
        bundle_of(TABLE, *rows_of(10, 1), kernel="bins"),
        source_of(TABLE, *rows_of(300, 2)),
        source_of(TABLE, x, y),
    )
    by_features = [s.value for s in krr.evaluate(both) if s.trained_on == "real"]
    monkeypatch.setattr(krr, "MOST_FEATURES", 0)
    by_kernel = [s.value for s in krr.evaluate(both) if s.trained_on == "real"]
    assert len(by_features) == 7
    np.testing.assert_allclose(by_features, by_kernel, atol=0.01)


def test_without_real_records_there_is_nothing_to_compare_with(table_task):
    scores = krr.evaluate(changed(table_task, real=None))
    assert {score.trained_on for score in scores} == {"release"}
    assert {score.records for score in scores} == {60}
