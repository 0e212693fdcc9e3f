"""Teachers and their votes: one record, one teacher; and what leaves is noisy counts of bins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.measure import teachers
from limbeck.measure.rows import Block, read
from limbeck.measure.teachers import Query, TeacherConfig, Teachers, bins_of, teachers_of
from limbeck.measure.votes import (
    LARGEST,
    VOTES,
    LargestCounts,
    VoteCounts,
    answers_of,
    midpoints,
    noisy_answers,
    tally,
)
from limbeck.models import discriminators
from limbeck.privacy.ledger import BudgetSpentError, Entry
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run

TABLE = Schema(
    classes=("a", "b"),
    columns=tuple(Column(f"x{i}", "numeric", minimum=0, maximum=1) for i in range(3)),
)
IMAGES = Schema(classes=(0, 1), image=ImageShape(8, 8))
SECRET = bytes(range(32))
HOW = TeacherConfig(teachers=6, updates=2)


def table(x, y):
    return limbeck.PrivateData.from_arrays(x, np.array(["a", "b"])[y], TABLE)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)).astype(np.float32), rng.integers(0, 2, n)


def batch(schema=TABLE, m=8, seed=1, *, per_record=True):
    rng = np.random.default_rng(seed)
    one_hot = jnp.eye(2)[jnp.arange(m) % 2]
    return Query(
        jnp.asarray(rng.random((m, schema.width)), jnp.float32),
        one_hot,
        jnp.eye(m) if per_record else one_hot,
        jnp.eye(schema.width),
    )


def run_of(draws=2, **noise):
    settled = [Entry(purpose=p, draws=draws, noise_multiplier=value) for p, value in noise.items()]
    run = Run(Plan(), None, seed=3)
    run.ledger = type(run.ledger)(settled)
    return run


def teachers_for(private, how=None, kind="small"):
    return Teachers(
        read(private, run_of()),
        len(private.schema.classes),
        discriminators.for_schema(private.schema, kind),
        how or HOW,
        secret=SECRET,
        key=jax.random.key(0),
    )


def voted(private, how=None, steps=3, **asked):
    """The votes of several steps, [steps, n, q]."""
    taught = teachers_for(private, how)
    return np.stack([taught.votes(batch(private.schema, seed=s, **asked), s) for s in range(steps)])


@pytest.mark.parametrize("keep", [False, True])
def test_a_record_more_or_less_changes_the_votes_of_its_teacher_alone(keep):
    """Without the last record, so that the others stay where they are; in every step."""
    how = TeacherConfig(teachers=6, updates=2, keep=keep)
    x, y = rows()
    whole, without = voted(table(x, y), how), voted(table(x[:-1], y[:-1]), how)
    differs = np.any(whole != without, axis=(0, 2))
    assert np.flatnonzero(differs).tolist() == [teachers_of(40, 6, SECRET)[-1]]


def test_a_replaced_record_changes_the_votes_of_its_teacher_alone():
    x, y = rows()
    other_x, other_y = x.copy(), y.copy()
    other_x[17], other_y[17] = 1 - x[17], 1 - y[17]
    differs = np.any(voted(table(x, y)) != voted(table(other_x, other_y)), axis=(0, 2))
    assert np.flatnonzero(differs).tolist() == [teachers_of(40, 6, SECRET)[17]]


def test_the_teacher_of_a_record_is_a_function_of_the_secret_and_its_position():
    one = teachers_of(5000, 10, SECRET)
    np.testing.assert_array_equal(one[:100], teachers_of(100, 10, SECRET))
    assert np.mean(one == teachers_of(5000, 10, SECRET[::-1])) < 0.2
    counts = np.bincount(one, minlength=10)
    # Independent draws, not equal parts: a chi-squared beyond these is rarer than one in 1e4.
    assert 1.0 < np.sum((counts - 500) ** 2 / 500) < 33.7


def test_teachers_draw_from_their_own_records_only():
    """Records that carry their teacher's number reach no other."""
    place = teachers_of(40, 6, SECRET)
    x = np.repeat((place[:, None] + 1) / 10, 3, axis=1).astype(np.float32)
    found = teachers_for(table(x, np.arange(40) % 2), HOW)
    uniform = np.random.default_rng(0).random((6, 2, 30)).astype(np.float32)
    uniform[:, :, 0], uniform[:, :, 1] = 0, np.nextafter(np.float32(1), np.float32(0))
    labels = np.arange(30) % 2
    real, logits, has = found._drawn(uniform, slice(0, 6), labels)
    own = 2 * (np.arange(6) + 1)[:, None, None, None] / 10 - 1
    expected = np.where(has[:, None, :, None] > 0, own, 0)
    np.testing.assert_allclose(real, np.broadcast_to(expected, real.shape), atol=1e-6)
    net, one_hot = discriminators.for_schema(TABLE), jnp.eye(2)[labels]
    plain = [[net.logits(HOW.initial(net), seen, one_hot) for seen in own] for own in real]
    np.testing.assert_allclose(logits, np.array(plain) * has[:, None], atol=1e-5)
    assert has.any()


def test_a_teacher_without_records_of_a_class_votes_and_says_nothing():
    """With three bins it is for the middle one; and the other class it knows."""
    x, _ = rows()
    of_one_class = voted(table(x, np.zeros(40, int))).reshape(3, 6, 8, 3)
    assert np.all(of_one_class[:, :, 1::2] == 1)
    assert np.any(of_one_class[:, :, ::2] != 1)


def test_empty_partitions_are_no_special_case():
    x, y = rows(1)
    votes = voted(table(x, y), TeacherConfig(teachers=5, bins=2))
    assert votes.shape == (3, 5, 24)
    assert set(np.unique(votes)) == {0, 1}  # who knows nothing throws a coin
    assert 0.2 < votes.mean() < 0.8


def test_bins_are_those_of_algorithm_1_and_what_is_no_number_has_one():
    how = TeacherConfig(teachers=1, bins=10, clip=1e-4)
    given = jnp.array([[-1.0, -1e-4, -0.5e-4, 0.19e-4, 0.99e-4, 1.0, jnp.inf, jnp.nan]])
    found = bins_of(given, how, jax.random.key(0))
    assert found[:7].tolist() == [0, 0, 2, 5, 9, 9, 9]
    assert found[7] in (4, 5)
    np.testing.assert_allclose(midpoints(4), [-0.75, -0.25, 0.25, 0.75])


def test_normalised_votes_do_not_depend_on_the_size_of_a_perturbation():
    given = jax.random.normal(jax.random.key(1), (5, 40))
    one, two = (bins_of(s * given, TeacherConfig(teachers=1), jax.random.key(0)) for s in (1, 1e-5))
    np.testing.assert_array_equal(one, two)
    broken = given.at[2, 3].set(jnp.nan)  # a row that is not known is no opinion, in that row
    votes = bins_of(broken, TeacherConfig(teachers=1), jax.random.key(0)).reshape(5, 40)
    assert np.all(votes[2] == 1)
    np.testing.assert_array_equal(votes[3], one.reshape(5, 40)[3])


def test_a_vote_is_the_bin_of_the_gradient_of_the_discriminator():
    """Against the plain definition, for each record and one teacher that knows everything."""
    x, y = rows()
    how = TeacherConfig(teachers=1, bins=10, clip=0.03, keep=True)
    found = teachers_for(table(x, y), how)
    asked = batch()
    votes = found.votes(asked, 0)
    weights = jax.tree.map(lambda w: w[0], found._chunks[0].weights)
    net = discriminators.for_schema(TABLE)
    first = how.initial(net)

    def logit(weights, x, y):
        return net.logits(weights, net.preprocess(x[None]), y[None])[0]

    def looks_real(x, y):
        return jax.nn.log_sigmoid(logit(weights, x, y) - logit(first, x, y))

    wanted = np.array([jax.grad(looks_real)(x, y) for x, y in zip(*asked[:2], strict=True)])
    expected = np.clip(np.floor((np.clip(wanted / 0.03, -1, 1) + 1) * 5), 0, 9)
    assert np.mean(votes.reshape(8, 3) == expected) > 0.95  # but for rounding at an edge
    assert len(np.unique(expected)) > 3


def test_teachers_learn_to_tell_their_records_apart():
    x = np.full((40, 3), 0.9, np.float32)
    how = TeacherConfig(teachers=4, updates=5, bins=2)
    found = teachers_for(table(x, np.arange(40) % 2), how)
    low = batch()._replace(synthetic=jnp.full((8, 3), 0.1))
    votes = [found.votes(low, step) for step in range(3)][-1]
    assert votes.mean() > 0.75  # most say: up


def test_answers_are_the_mean_of_the_votes_or_the_commonest_bin():
    counts = np.array([[7.0, 2.0, 1.0], [0.0, 9.0, 1.0]])
    np.testing.assert_allclose(answers_of(counts, 10, "mean"), [-0.4, 2 / 30], atol=1e-12)
    np.testing.assert_allclose(answers_of(counts, 10, "argmax"), [-2 / 3, 0], atol=1e-12)


def asked_once(run, aggregate="mean", **settings):
    how = {"aggregate": aggregate, **settings}
    return noisy_answers(run, teachers_for(table(*rows())), batch(), 0, **how)


def test_a_query_without_consensus_is_not_answered_and_paid_for_all_the_same():
    everyone, nobody = (run_of(**{VOTES: 1e-9, LARGEST: 1e-9}) for _ in range(2))
    assert np.any(asked_once(everyone, "argmax", threshold=0.1))
    assert not np.any(asked_once(nobody, "argmax", threshold=1.1))
    assert everyone.ledger.draws == nobody.ledger.draws == 2
    assert {entry.purpose for entry in nobody.ledger.entries} == {VOTES, LARGEST}


def test_without_a_threshold_the_largest_counts_are_not_measured():
    run = run_of(**{VOTES: 1.0})
    for _ in range(2):
        assert asked_once(run).shape == (8, 3)
    with pytest.raises(BudgetSpentError):
        asked_once(run)


def test_a_voter_moves_counts_by_the_root_of_two_and_the_largest_by_one():
    """For every question; also a vote that is none of the bins counts once."""
    rng = np.random.default_rng(3)
    votes = rng.integers(0, 4, (30, 50)).astype(np.uint8)

    def counted(votes, kind):
        contribution = kind(50, 4, 30)
        block = Block(votes, np.zeros(30, np.int32), np.ones(30, bool))
        return contribution(None, block), contribution.l2_bound

    for change in (0, 3, 255, *rng.integers(0, 4, (20, 50)).astype(np.uint8)):
        other = votes.copy()
        other[7] = change
        for kind in (VoteCounts, LargestCounts):
            (one, bound), (two, _) = counted(votes, kind), counted(other, kind)
            assert np.linalg.norm(one - two) <= bound + 1e-9
        assert tally(other, 4).sum() == 30 * 50
    all_changed = votes.copy()
    all_changed[7] = (votes[7] + 1) % 4
    moved = tally(votes, 4) - tally(all_changed, 4)
    assert np.linalg.norm(moved) == pytest.approx(VoteCounts(50, 4, 30).l2_bound)  # is reached


def test_nothing_can_be_read_off_teachers():
    taught = teachers_for(table(*rows()))
    assert repr(taught) == "Teachers(...)"
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        taught.__reduce__()


def test_chunks_do_not_change_a_vote(monkeypatch):
    private = table(*rows())
    whole = voted(private)
    monkeypatch.setattr(teachers, "CHUNK_BYTES", 1)
    np.testing.assert_array_equal(whole, voted(private))


def test_pictures_are_seen_by_a_convolution():
    """As a product with patches, against the convolution of the library."""
    net = discriminators.ConvNet(shape=(8, 8, 2), classes=3, channels=4, hidden=5)
    weights = net.init(jax.random.key(0))
    x = jax.random.uniform(jax.random.key(1), (6, 128))
    patches = net._patches(net.preprocess(x))
    filters = weights[0][0][:50].reshape(5, 5, 2, 4)
    images = jnp.pad((2 * x - 1).reshape(6, 8, 8, 2), ((0, 0), (2, 2), (2, 2), (0, 0)))
    layout = ("NHWC", "HWIO", "NHWC")
    plain = jax.lax.conv_general_dilated(images, filters, (2, 2), "VALID", dimension_numbers=layout)
    np.testing.assert_allclose(patches @ weights[0][0][:50], plain, atol=1e-5)


def test_the_papers_discriminator_has_as_many_weights_as_the_paper_says():
    mnist = Schema(classes=tuple(range(10)), image=ImageShape(28, 28))
    paper = discriminators.for_schema(mnist, "paper")
    assert 1.6e6 < discriminators.size(paper) < 1.62e6
    for kind in ("small", "conv"):
        assert discriminators.size(discriminators.for_schema(mnist, kind)) < 20_000
    sizes = [w.size + b.size for w, b in paper.init(jax.random.key(0))]
    assert sum(sizes) == discriminators.size(paper)


@pytest.mark.parametrize("kind", ["small", "conv", "paper"])
def test_votes_on_pictures_are_cast_by_all(kind):
    rng = np.random.default_rng(0)
    private = limbeck.PrivateData.from_arrays(
        rng.integers(0, 256, (20, 8, 8)), np.arange(20) % 2, IMAGES
    )
    votes = teachers_for(private, kind=kind).votes(batch(IMAGES, per_record=False), 0)
    assert votes.shape == (6, 2 * 64)
    assert len(np.unique(votes)) == 3
