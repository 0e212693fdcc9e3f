"""How alike tables are, and how alike pictures are."""

import numpy as np
import pytest
from made_up import TABLE, bundle_of, changed, rows_of, source_of
from scipy.linalg import sqrtm

from limbeck.errors import UserError
from limbeck.evaluate import images, similarity
from limbeck.evaluate.images import frechet
from limbeck.evaluate.similarity import cramers_v
from limbeck.evaluate.task import Task


def values(scores, trained_on="release"):
    return {s.metric: s.value for s in scores if s.trained_on == trained_on}


def test_a_table_is_like_itself(table_task):
    x, y = rows_of(300, 2)
    same = changed(table_task, bundle=bundle_of(TABLE, x, y))
    assert values(similarity.evaluate(same)) == {"marginals": 1, "associations": 1}


def test_real_rows_are_more_alike_than_rows_without_relations(table_task):
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(400), np.eye(3)[rng.integers(0, 3, 400)], rng.random(400)])
    unrelated = bundle_of(TABLE, x.astype(np.float32), rng.integers(0, 2, 400))
    scores = similarity.evaluate(changed(table_task, bundle=unrelated))
    assert values(scores)["associations"] < values(scores, "real")["associations"] - 0.05
    assert values(scores)["marginals"] == pytest.approx(
        values(scores, "real")["marginals"], abs=0.05
    )


def test_one_value_everywhere_is_as_far_as_its_share_says():
    """Marginals: the age and dose of a constant are 0.95 apart from even ones."""
    n = 20_000
    even = np.column_stack([np.arange(n) / n, np.tile([1, 0, 0], (n, 1)), np.arange(n) / n])
    constant = np.tile(np.array([[0.5, 1, 0, 0, 0.5]]), (10, 1))
    test = source_of(TABLE, even.astype(np.float32), np.zeros(n, np.int64))
    bundle = bundle_of(TABLE, constant.astype(np.float32), np.zeros(10, np.int64))
    found = values(similarity.evaluate(Task(bundle, test)))["marginals"]
    assert found == pytest.approx(1 - (0.95 + 0 + 0.95 + 0) / 4, abs=1e-3)


def test_cramers_v_of_independent_columns_is_about_nought_in_few_rows():
    """Without the correction for bias the mean would be about 0.6."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        counts = np.zeros((5, 5))
        np.add.at(counts, (rng.integers(0, 5, 12), rng.integers(0, 5, 12)), 1)
        found.append(cramers_v(counts))
    assert np.mean(found) < 0.25


def test_the_distance_is_that_of_gaussians():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)) + 1
    b = rng.normal(size=(700, 4)) @ rng.normal(size=(4, 4))
    c, d = np.cov(a.T, bias=True), np.cov(b.T, bias=True)
    gap = a.mean(0) - b.mean(0)
    expected = gap @ gap + np.trace(c + d - 2 * sqrtm(c @ d).real)
    assert frechet(a, b) == pytest.approx(expected, rel=1e-6)


def test_pictures_are_nearer_to_their_kind(picture_task):
    scores = images.evaluate(picture_task)
    assert values(scores, "real")["distance"] > 0
    dark = 0.3 * picture_task.bundle.points
    darker = changed(
        picture_task,
        bundle=bundle_of(picture_task.bundle.schema, dark, picture_task.release_rows.y),
    )
    assert values(images.evaluate(darker))["distance"] > 3 * values(scores)["distance"]


def test_each_is_for_its_kind_of_records(table_task, picture_task):
    with pytest.raises(UserError, match="similarity"):
        images.evaluate(table_task)
    with pytest.raises(UserError, match="frechet"):
        similarity.evaluate(picture_task)
