"""Teachers and their votes: one record, one teacher; and what leaves is noisy counts of bins."""

import math
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import limbeck
from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.measure import teachers
from limbeck.measure.teachers import Batch, Schooling, Teachers, bins_of, teachers_of
from limbeck.measure.votes import CONSENSUS, COUNTS, VOTES, NoisyVotes, answers, midpoints
from limbeck.models import discriminators
from limbeck.privacy import clipping
from limbeck.privacy.ledger import BudgetSpentError, Entry, Ledger
from limbeck.privacy.noise import SeededEntropy

TABLE = Schema(
    classes=("a", "b"),
    columns=tuple(Column(f"x{i}", "numeric", minimum=0, maximum=1) for i in range(3)),
)
IMAGES = Schema(classes=(0, 1), image=ImageShape(8, 8))
SECRET = bytes(range(32))
HOW = Schooling(teachers=6, updates=2)


def table(x, y):
    return limbeck.PrivateData.from_arrays(x, np.array(["a", "b"])[y], TABLE)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, 3)).astype(np.float32), rng.integers(0, 2, n)


def batch(schema=TABLE, m=8, seed=1, *, per_record=True):
    rng = np.random.default_rng(seed)
    one_hot = jnp.eye(2)[jnp.arange(m) % 2]
    return Batch(
        jnp.asarray(rng.random((m, schema.width)), jnp.float32),
        one_hot,
        jnp.eye(m) if per_record else one_hot,
        jnp.eye(schema.width),
    )


def voted(private, how=HOW, steps=3, **asked):
    """The votes of several steps, [steps, n, q]."""
    found = Teachers(
        private,
        discriminators.for_schema(private.schema),
        how,
        secret=SECRET,
        key=jax.random.key(0),
    )
    return np.stack([found.vote(batch(private.schema, seed=s, **asked)) for s in range(steps)])


@pytest.mark.parametrize("memory", [0.0, 0.5, 1.0])
def test_a_record_more_or_less_changes_the_votes_of_its_teacher_alone(memory):
    """Without the last record, so that the others stay where they are; in every step."""
    how = Schooling(teachers=6, updates=2, memory=memory)
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
    found = Teachers(
        table(x, np.arange(40) % 2),
        discriminators.for_schema(TABLE),
        HOW,
        secret=SECRET,
        key=jax.random.key(0),
    )
    uniform = np.random.default_rng(0).random((6, 2, 30)).astype(np.float32)
    uniform[:, :, 0], uniform[:, :, 1] = 0, np.nextafter(np.float32(1), np.float32(0))
    labels = np.arange(30) % 2
    real, logits, has = found._drawn(uniform, slice(0, 6), labels)
    own = 2 * (np.arange(6) + 1)[:, None, None, None] / 10 - 1
    expected = np.where(has[:, None, :, None] > 0, own, 0)
    np.testing.assert_allclose(real, np.broadcast_to(expected, real.shape), atol=1e-6)
    net, one_hot = discriminators.for_schema(TABLE), jnp.eye(2)[labels]
    plain = [[net.logits(HOW.first(net), seen, one_hot) for seen in own] for own in real]
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
    votes = voted(table(x, y), Schooling(teachers=5, bins=2))
    assert votes.shape == (3, 5, 24)
    assert set(np.unique(votes)) == {0, 1}  # who knows nothing throws a coin
    assert 0.2 < votes.mean() < 0.8


def test_bins_are_those_of_algorithm_1_and_what_is_no_number_has_one():
    how = Schooling(teachers=1, bins=10, clip=1e-4)
    given = jnp.array([[-1.0, -1e-4, -0.5e-4, 0.19e-4, 0.99e-4, 1.0, jnp.inf, jnp.nan]])
    found = bins_of(given, how, jax.random.key(0))
    assert found[:7].tolist() == [0, 0, 2, 5, 9, 9, 9]
    assert found[7] in (4, 5)
    np.testing.assert_allclose(midpoints(4), [-0.75, -0.25, 0.25, 0.75])


def test_normalised_votes_do_not_depend_on_the_size_of_a_perturbation():
    given = jax.random.normal(jax.random.key(1), (5, 40))
    one, two = (bins_of(s * given, Schooling(teachers=1), jax.random.key(0)) for s in (1, 1e-5))
    np.testing.assert_array_equal(one, two)
    broken = given.at[2, 3].set(jnp.nan)  # a row that is not known is no opinion, in that row
    votes = bins_of(broken, Schooling(teachers=1), jax.random.key(0)).reshape(5, 40)
    assert np.all(votes[2] == 1)
    np.testing.assert_array_equal(votes[3], one.reshape(5, 40)[3])


def test_a_vote_is_the_bin_of_the_gradient_of_the_discriminator():
    """Against the plain definition, for each record and one teacher that knows everything."""
    x, y = rows()
    how = Schooling(teachers=1, bins=10, clip=0.03, memory=1.0)
    found = Teachers(
        table(x, y), discriminators.for_schema(TABLE), how, secret=SECRET, key=jax.random.key(0)
    )
    asked = batch()
    votes = found.vote(asked)
    weights = jax.tree.map(lambda w: w[0], found._chunks[0].weights)
    net = discriminators.for_schema(TABLE)
    first = how.first(net)

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
    how = Schooling(teachers=4, updates=5, bins=2)
    found = Teachers(
        table(x, np.arange(40) % 2),
        discriminators.for_schema(TABLE),
        how,
        secret=SECRET,
        key=jax.random.key(0),
    )
    low = batch()._replace(fakes=jnp.full((8, 3), 0.1))
    votes = [found.vote(low) for _ in range(3)][-1]
    assert votes.mean() > 0.75  # most say: up


def oracle(plan, private=None, **settings):
    private = table(*rows()) if private is None else private
    return NoisyVotes(
        private,
        discriminators.for_schema(private.schema),
        HOW,
        ledger=plan,
        entropy=SeededEntropy(3),
        **settings,
    )


def plan(**noise):
    mechanisms = {COUNTS: "laplace"}
    return Ledger(
        Entry(
            purpose=purpose,
            draws=2,
            noise_multiplier=value,
            mechanism=mechanisms.get(purpose, "gaussian"),
        )
        for purpose, value in noise.items()
    )


def test_answers_are_the_mean_of_the_votes_or_the_commonest_bin():
    counts = np.array([[7.0, 2.0, 1.0], [0.0, 9.0, 1.0]])
    np.testing.assert_allclose(answers(counts, 10, "mean"), [-0.4, 2 / 30], atol=1e-12)
    np.testing.assert_allclose(answers(counts, 10, "argmax"), [-2 / 3, 0], atol=1e-12)


def test_a_query_without_consensus_is_not_answered_and_paid_for_all_the_same():
    tiny = {VOTES: 1e-9, CONSENSUS: 1e-9}
    everyone, nobody = plan(**tiny), plan(**tiny)
    found = oracle(everyone, aggregate="argmax", threshold=0.1)(batch())
    none = oracle(nobody, aggregate="argmax", threshold=1.1)(batch())
    assert np.any(found)
    assert not np.any(none)
    assert everyone.draws == nobody.draws == 2
    assert {entry.purpose for entry in nobody.entries} == {VOTES, CONSENSUS}


def test_without_a_threshold_the_largest_counts_are_not_asked_for():
    book = plan(**{VOTES: 1.0})
    asks = oracle(book)
    for _ in range(2):
        assert asks(batch()).shape == (8, 3)
    with pytest.raises(BudgetSpentError):
        asks(batch())


def test_the_noise_of_votes_has_the_deviation_that_is_charged(monkeypatch):
    """√(2q) times the multiplier, on each count; 4 sigma."""
    book, seen = plan(**{VOTES: 3.0}), []
    monkeypatch.setattr(
        "limbeck.measure.votes.answers", lambda counts, *_: seen.append(counts) or counts[:, 0]
    )
    asked = batch(m=200)
    asks = oracle(book)
    votes = asks._teachers.vote(asked)
    asks._teachers.vote = lambda _: votes
    asks(asked)
    noise = seen[0] - clipping.count_votes(votes, 3).value
    assert noise.std() == pytest.approx(3 * math.sqrt(2 * 600), rel=4 / math.sqrt(2 * noise.size))


def test_class_counts_are_noised_by_laplace():
    book = plan(**{COUNTS: 1e-9})
    np.testing.assert_allclose(oracle(book).class_counts(), np.bincount(rows()[1]), atol=1e-6)
    assert book.entries[0].mechanism == "laplace"


def test_nothing_can_be_read_off_the_oracle():
    asks = oracle(plan(**{VOTES: 1.0}))
    assert repr(asks) == "NoisyVotes(...)"
    assert repr(asks._teachers) == "Teachers(...)"
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        asks.__reduce__()


SHARED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={devices}"
import sys
sys.path.insert(0, {tests!r})
import jax, numpy as np
import test_votes as t
assert len(jax.devices()) == {devices}
how = t.Schooling(teachers=8, updates=2, memory=1.0)
np.save({out!r}, t.voted(t.table(*t.rows()), how))
"""


def test_several_devices_give_the_votes_of_one(tmp_path, request):
    """Teachers are shared out over virtual devices; the paper's size runs where the memory is."""
    found = []
    for devices in (1, 4):
        out = str(tmp_path / f"{devices}.npy")
        tests = str(request.path.parent)
        code = SHARED.format(devices=devices, out=out, tests=tests)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(np.load(out))
    one, four = found
    np.testing.assert_array_equal(one[0], four[0])
    # Later steps are rounded differently where fewer teachers are side by side.
    assert np.mean(one == four) > 0.98


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
    found = Teachers(
        private,
        discriminators.for_schema(IMAGES, kind),
        HOW,
        secret=SECRET,
        key=jax.random.key(0),
    )
    votes = found.vote(batch(IMAGES, per_record=False))
    assert votes.shape == (6, 2 * 64)
    assert len(np.unique(votes)) == 3
