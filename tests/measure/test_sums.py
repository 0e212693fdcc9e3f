"""The private sum: integers that are the same bits in any order, parts, blocks and threads."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

from limbeck import batching
from limbeck.data.column import Column
from limbeck.data.schema import Schema
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fc_ntk import FCNTK
from limbeck.features.fourier import Fourier
from limbeck.features.inputs import TableInputs
from limbeck.features.quantiles import QuantileMap
from limbeck.measure.contributions import outer
from limbeck.measure.contributions.counts import ClassCounts, Histograms
from limbeck.measure.contributions.critic import CriticGradient
from limbeck.measure.contributions.embedding import FeatureSum, OneLayerSum, embedding_sum
from limbeck.measure.contributions.readout import Readout, ReadoutGradient
from limbeck.measure.contributions.ridge_points import PointGradient, coordinates, prepare
from limbeck.measure.rows import Rows
from limbeck.measure.votes import VoteCounts
from limbeck.models import discriminators
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import ROUNDING, Clip
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run
from limbeck.privacy.sampling import Sample

N, D, C = 700, 5, 3
TABLE = Schema(
    classes=(0, 1, 2),
    columns=tuple(Column(f"x{i}", "numeric", minimum=0, maximum=1) for i in range(D)),
)


def records(seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((N, D)).astype(np.float32), rng.integers(0, C, N).astype(np.int32)


def unit(x):
    centred = x - 0.5
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def weights(seed=1):
    return np.random.default_rng(seed).normal(size=(D, C))


def critic():
    import jax

    net = discriminators.for_schema(TABLE)
    return CriticGradient(net, Clip(bound=0.1)), net.init(jax.random.key(0))


def cases():
    """Contribution, public argument, and what rows hold of a record."""
    readout = Readout(weights(), np.array([1.0, 0.5, 0.2]))
    thresholds = (0.2, 0.4, 0.9)
    own, weights_of_critic = critic()
    return {
        "class counts": (ClassCounts(C), None, None),
        "histograms": (Histograms((0, 3), (thresholds, (0.5,))), None, None),
        "softmax readout": (ReadoutGradient("softmax", Clip(bound=0.5)), readout, codes),
        "ridge readout": (ReadoutGradient("ridge", Clip()), readout, codes),
        "one hidden layer": (
            OneLayerSum(DenseNTK(dimension=D, widths=(7,)), C),
            QuantileMap(),
            None,
        ),
        "fourier": (
            FeatureSum(Fourier(dimension=D, count=6, length_scale=1.0), C),
            QuantileMap(),
            None,
        ),
        "critic": (own, weights_of_critic, None),
        "votes": (VoteCounts(D, 4, N), None, lambda x: (x * 4).astype(np.uint8)),
    }


def codes(x):
    return outer.codes(unit(x))


def total(contribution, public, x, y, cuts=(), sample=None):
    parts = list(zip(np.split(x, cuts), np.split(y, cuts), strict=True))
    rows = Rows(lambda: parts, x.shape[1:], x.dtype.type)
    return rows.total(contribution, public, sample or Sample(None, 1.0))


@pytest.mark.parametrize("name", cases())
def test_sums_are_the_same_integers_in_any_order_parts_and_threads(name, monkeypatch):
    contribution, public, derive = cases()[name]
    x, y = records()
    x = x if derive is None else derive(x)
    whole = total(contribution, public, x, y)
    assert whole.dtype == np.int64
    assert np.any(whole)
    order = np.random.default_rng(5).permutation(N)
    for cuts in ((), (1,), (50, 51, 200, 400, 401, 699)):
        np.testing.assert_array_equal(total(contribution, public, x[order], y[order], cuts), whole)
    monkeypatch.setattr(batching, "CORES", 1)
    np.testing.assert_array_equal(total(contribution, public, x, y), whole)


@pytest.mark.parametrize("name", [name for name in cases() if name != "critic"])
def test_blocks_of_any_size_give_the_same_integers(name):
    contribution, public, derive = cases()[name]
    x, y = records()
    x = x if derive is None else derive(x)
    if name == "votes":
        small = dataclasses.replace(contribution, block=64)
    else:
        small = dataclasses.replace(contribution)
        object.__setattr__(small, "block", 33)
    whole = total(contribution, public, x, y)
    np.testing.assert_array_equal(total(small, public, x, y), whole)


@pytest.mark.parametrize("name", cases())
def test_one_record_moves_the_sum_by_at_most_its_bound(name):
    contribution, public, derive = cases()[name]
    x, y = records()
    x = x if derive is None else derive(x)
    whole = total(contribution, public, x, y)
    for gone in (0, 333, N - 1):
        kept = np.arange(N) != gone
        if name == "votes":  # one voter changes, none leaves
            other = x.copy()
            other[gone] = (x[gone] + 1) % 4
            moved = whole - total(contribution, public, other, y)
        else:
            moved = whole - total(contribution, public, x[kept], y[kept])
        # Squares of whole numbers, without rounding.
        assert sum(int(v) ** 2 for v in moved.ravel()) <= contribution.l2_bound**2 * (1 + 1e-12)
        assert np.any(moved)


WRONG = {
    "zeros": 0.0,
    "not a number": np.nan,
    "infinite": np.inf,
    "far below": -1e8,
    "far above": 1e30,
    "tiny": 1e-38,
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", [n for n in cases() if n not in ("votes", "class counts")])
def test_a_record_that_no_encoder_makes_stays_within_the_bound(name, value):
    """And leaves the contributions of the others as they are."""
    contribution, public, derive = cases()[name]
    x, y = records()
    x[7] = value
    with np.errstate(invalid="ignore", over="ignore"):
        x = x if derive is None else derive(x)
        whole = total(contribution, public, x, y)
        alone = total(contribution, public, x[7:8], y[7:8])
        others = total(contribution, public, np.delete(x, 7, 0), np.delete(y, 7))
    np.testing.assert_array_equal(whole - alone, others)
    assert sum(int(v) ** 2 for v in alone.ravel()) <= contribution.l2_bound**2 * (1 + 1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e300, 0.0])
@pytest.mark.parametrize("name", ["softmax readout", "ridge readout"])
def test_a_public_argument_that_is_not_finite_leaves_bounds_in_place(name, wrong):
    contribution, _, derive = cases()[name]
    x, y = records()
    public = Readout(np.full((D, C), wrong), np.full(C, wrong))
    with np.errstate(all="ignore"):
        alone = total(contribution, public, derive(x[:1]), y[:1])
    assert sum(int(v) ** 2 for v in alone.ravel()) <= contribution.l2_bound**2


def test_sums_do_not_overflow_at_a_thousand_million_records():
    """The largest entry of a contribution is its bound; so many of them stay below 2⁶²."""
    for contribution, _, _ in cases().values():
        assert 1e9 * contribution.l2_bound < 2**62
        assert contribution.block * contribution.l2_bound < 2**53


def test_a_closed_form_sum_moves_by_rounding_only_when_records_are_shuffled():
    """It stays within the margin that its bound has for rounding."""
    x, y = records()
    inputs, kernel = TableInputs(dimension=D), FCNTK(dimension=D)
    rows = coordinates(inputs, x)
    support_y = np.eye(C)[[0, 1, 2, 0]] - 1 / C
    public = prepare(kernel, np.random.default_rng(0).normal(size=(4, D)), support_y, 1e-3)
    contribution = PointGradient(Clip(), kernel)
    whole = total(contribution, public, rows, y)
    assert whole.dtype == np.float64
    order = np.random.default_rng(5).permutation(N)
    for cuts in ((), (1,), (50, 51, 200, 400, 401, 699)):
        other = total(contribution, public, rows[order], y[order], cuts)
        assert np.linalg.norm(other - whole) < 1e-6 * ROUNDING * contribution.l2_bound


def test_coordinates_of_a_record_do_not_depend_on_its_place():
    x, _ = records()
    inputs = TableInputs(dimension=D)
    whole = coordinates(inputs, x)
    np.testing.assert_array_equal(coordinates(inputs, x[1:]), whole[1:])
    np.testing.assert_array_equal(coordinates(inputs, x[::-1]), whole[::-1])


def test_an_empty_data_set_and_an_empty_sample_have_a_sum_of_zeros():
    contribution, public, derive = cases()["softmax readout"]
    x, y = records()
    x = derive(x)
    assert not total(contribution, public, x[:0], y[:0]).any()

    class Never:
        seeded = True

        def bytes(self, length):
            return b"\xff" * length

    nobody = total(contribution, public, x, y, sample=Sample(Never(), 0.5))
    assert nobody.shape == (D, C)
    assert not nobody.any()


def test_the_noisy_sum_under_a_seed_is_the_same_in_any_order():
    contribution, public, derive = cases()["softmax readout"]
    x, y = records()
    order, sums = np.random.default_rng(5).permutation(N), []
    for parts in ([(derive(x), y)], [(derive(x[order]), y[order])]):
        run = Run(Plan(measurements=(Measurement(purpose="sum"),)), Budget(epsilon=1.0), seed=3)
        rows = Rows(lambda parts=parts: parts, (D,), np.int16)
        sums.append(run.sum(rows, contribution, public, purpose="sum"))
    np.testing.assert_array_equal(*sums)


SCRIPT = """
import sys, numpy as np
sys.path.insert(0, {tests!r})
import test_sums as t
x, y = t.records()
found = {{}}
for name, (contribution, public, derive) in t.cases().items():
    if name != "critic":
        found[name] = t.total(contribution, public, x if derive is None else derive(x), y)
np.savez({out!r}, **found)
"""


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="asks Linux for its processor")
def test_processors_with_shorter_vectors_give_the_same_integers(tmp_path, request):
    """AVX2 in place of what the machine has, for XLA, NumPy and OpenBLAS."""
    narrow = {
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4",
        "OPENBLAS_CORETYPE": "Haswell",
    }
    sums = []
    for number, extra in enumerate(({}, narrow)):
        out = tmp_path / f"{number}.npz"
        code = SCRIPT.format(tests=str(request.path.parent), out=str(out))
        env = {**os.environ, **extra}
        ended = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True
        )
        if ended.returncode and "NPY_DISABLE" in ended.stderr:
            pytest.skip("this NumPy has no longer vectors to leave out")
        assert ended.returncode == 0, ended.stderr
        sums.append(np.load(out))
    for name in sums[0]:
        np.testing.assert_array_equal(sums[0][name], sums[1][name], err_msg=name)


def test_embeddings_are_integers_where_features_are_laid_out_or_of_one_layer():
    from limbeck.features.hermite import Hermite

    assert embedding_sum(DenseNTK(dimension=4, widths=(5,)), 2).exact
    assert embedding_sum(Fourier(dimension=4, count=5, length_scale=1.0), 2).exact
    assert not embedding_sum(DenseNTK(dimension=4, widths=(5, 5)), 2).exact
    assert not embedding_sum(Hermite(dimension=4, order=3, subset=2), 2).exact
