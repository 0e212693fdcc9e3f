"""The student of G-PATE, what a run needs, and what is told to whom."""

import dataclasses

import jax
import numpy as np
import pytest

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.generate import g_pate, gan
from limbeck.generate.g_pate import GPATE, PAPER, Student, forward, noise_and_labels, shares_of
from limbeck.measure.contributions.counts import CLASS_COUNTS
from limbeck.measure.votes import LARGEST, VOTES
from limbeck.models import discriminators
from limbeck.models.generators import codes_for
from limbeck.privacy import plan

TABLE = Schema(
    classes=("a", "b"),
    columns=tuple(Column(f"x{i}", "numeric", minimum=0, maximum=1) for i in range(3)),
)
MNIST = Schema(classes=tuple(range(10)), image=ImageShape(28, 28))
BUDGET = limbeck.Budget(epsilon=10.0)


def two_clouds(n=400, seed=0):
    """Class a about 0.2, class b about 0.8."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = np.clip(0.2 + 0.6 * y[:, None] + 0.05 * rng.standard_normal((n, 3)), 0, 1)
    return limbeck.PrivateData.from_arrays(x.astype(np.float32), np.array(["a", "b"])[y], TABLE)


def test_classes_go_where_their_records_are():
    """The votes of 600 teachers, who know two or three records each, suffice."""
    settings = GPATE(teachers=600, steps=20, batch=20, records=400)
    bundle = settings.fit(two_clouds(1500), BUDGET, seed=0)
    of_class = [bundle.points[bundle.y == name].mean(axis=0) for name in ("a", "b")]
    assert np.all(np.abs(of_class[0] - 0.2) < 0.15)
    assert np.all(np.abs(of_class[1] - 0.8) < 0.15)


def test_the_student_moves_its_records_where_it_is_told():
    """Up in the first column for class a, down in the second for b."""
    settings = GPATE(steps=10, batch=20, variation=1)
    student = Student(settings, TABLE, jax.random.key(0))
    told = np.zeros((4, 3))  # a, a by the code, b, b by the code
    told[0, 0], told[2, 1] = 1, -1
    codes = codes_for(*noise_and_labels(jax.random.key(1), 200, 10, 2))
    before = forward(student._net, codes)
    for step in range(5):
        student.learns(step, told, student.asks(step))
    moved = np.asarray(forward(student._net, codes) - before)
    assert moved[::2, 0].mean() > max(0.1, 1.5 * abs(moved[1::2, 0].mean()))
    assert moved[1::2, 1].mean() < -0.1


def test_what_is_asked_of_a_class_depends_on_the_code_as_the_answer_does():
    student = Student(GPATE(steps=3, batch=20, variation=2), MNIST, jax.random.key(0))
    asked = student.asks(0)
    assert asked.row_projection.shape == (20, 10 * 3)
    assert asked.column_projection.shape == (784, 64)
    np.testing.assert_allclose(
        asked.column_projection.T @ asked.column_projection, np.eye(64), atol=1e-5
    )
    assert np.all(
        np.asarray(asked.row_projection != 0).sum(axis=1) == 3
    )  # a record is in one class
    paper = Student(GPATE(steps=3, batch=20, **PAPER), MNIST, jax.random.key(0))
    first, second = paper.asks(0), paper.asks(1)
    np.testing.assert_array_equal(first.row_projection, np.eye(20))
    assert first.column_projection.shape == (784, 10)
    assert float(first.column_projection.var()) == pytest.approx(
        1 / 10, rel=0.1
    )  # Algorithm 1, line 2
    assert not np.any(np.asarray(first.column_projection) == np.asarray(second.column_projection))


def test_the_ledger_has_every_draw_and_the_paper_pays_for_every_threshold():
    private = two_clouds(50)
    small = {"teachers": 10, "steps": 3, "batch": 4, "records": 5}
    ours = GPATE(**small).fit(private, BUDGET, seed=0)
    assert {e.purpose: e.draws for e in ours.events} == {CLASS_COUNTS: 1, VOTES: 3}
    paper = GPATE(**{**PAPER, **small, "dimensions": 2}).fit(private, BUDGET, seed=0)
    assert {e.purpose: e.draws for e in paper.events} == {CLASS_COUNTS: 1, VOTES: 3, LARGEST: 3}


def test_classes_without_records_are_still_generated():
    shares = shares_of(np.array([-300.0, 5000.2, 700.7]), 100.0)
    np.testing.assert_allclose(shares, np.array([100, 5000, 701]) / 5801)


def test_the_papers_size_needs_77_gigabytes_and_is_refused_with_what_helps(monkeypatch):
    monkeypatch.setattr(plan, "available_memory", lambda: 24e9)
    paper = GPATE(teachers=4000, discriminator="paper", **PAPER)
    assert needs(paper).memory == pytest.approx(77e9, rel=0.02)
    with pytest.raises(limbeck.UserError, match=r"about 7[789]\.\d GB.*fewer teachers"):
        needs(paper).check()
    needs(dataclasses.replace(paper, teachers=1000)).check()
    needs(dataclasses.replace(paper, keep_teachers=False)).check()
    needs(dataclasses.replace(paper, discriminator="small")).check()


def needs(settings):
    return settings.plan(MNIST, BUDGET).needs


def test_what_is_stored_is_what_was_estimated():
    """A weight and two moments, of each teacher."""
    net = discriminators.for_schema(TABLE)
    weights = net.init(jax.random.key(0))
    numbers = sum(leaf.size for leaf in jax.tree.leaves(weights))
    assert g_pate.BYTES_A_WEIGHT * numbers == 12 * discriminators.size(net)


def test_the_comparison_with_the_threshold_cannot_have_the_whole_budget():
    with pytest.raises(limbeck.UserError, match="consensus_share must be below 1"):
        GPATE(threshold=0.5, consensus_share=1.0)


def test_nothing_recompiles_from_one_fit_to_the_next():
    sizes = []
    for seed in range(2):
        settings = {"steps": 1, "batch": 4, "records": 5}
        GPATE(teachers=5, student_steps=1, **settings).fit(two_clouds(20), BUDGET, seed=seed)
        gan.DPGAN(**settings).fit(two_clouds(20), BUDGET, seed=seed)
        jitted = (g_pate._learn, gan._criticise, gan._improve)
        sizes.append([function._cached._cache_size() for function in jitted])
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("schema", "epsilon", "teachers"),
    [(MNIST, 10, 2000), (MNIST, 1, 8000), (MNIST, 0.1, 16_000), (TABLE, 1, 2000)],
)
def test_the_less_may_be_spent_the_more_teachers_vote_on_pictures(schema, epsilon, teachers):
    budget = limbeck.Budget(epsilon=float(epsilon))
    assert GPATE()._teacher_config(schema, budget).teachers == teachers
    assert GPATE(teachers=7)._teacher_config(schema, budget).teachers == 7
