"""What a kernel sees of a record is a function of that record alone."""

import numpy as np
import pytest

from limbeck.features.inputs import ImageInputs, TableInputs

KINDS = [
    ImageInputs(shape=(12, 10, 3)),
    ImageInputs(shape=(28, 28, 1), share=0.35),
    TableInputs(dimension=7),
]


@pytest.mark.parametrize("inputs", KINDS, ids=repr)
def test_a_record_is_seen_the_same_whatever_stands_beside_it(inputs):
    x = np.random.default_rng(0).uniform(size=(9, inputs.dimension)).astype(np.float32)
    alone = np.concatenate([inputs.from_records(row[None]) for row in x])
    np.testing.assert_allclose(inputs.from_records(x), alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inputs", KINDS, ids=repr)
def test_the_basis_is_orthonormal(inputs):
    basis = inputs.basis.astype(np.float64)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-6)


@pytest.mark.parametrize("inputs", KINDS, ids=repr)
def test_support_points_come_back_from_their_published_units(inputs):
    points = np.random.default_rng(1).normal(size=(5, inputs.dimension))
    np.testing.assert_allclose(inputs.from_support(inputs.to_support(points)), points, atol=1e-12)


def test_the_basis_holds_the_smooth_pictures_and_not_the_chequered_ones():
    inputs = ImageInputs(shape=(28, 28, 1), share=0.35)
    row, column = np.mgrid[:28, :28]
    smooth = np.cos(np.pi * (row + 0.5) / 28).ravel()
    chequered = ((row + column) % 2 * 2.0 - 1).ravel()
    kept = [np.linalg.norm(v @ inputs.basis) / np.linalg.norm(v) for v in (smooth, chequered)]
    assert kept[0] == pytest.approx(1, abs=1e-6)
    assert kept[1] < 0.1


@pytest.mark.parametrize(
    ("side", "share", "kept"),
    [(8, 0.35, 8), (16, 0.35, 8), (28, 0.35, 10), (28, 0.5, 14), (9, 1, 9)],
)
def test_how_many_frequencies_are_kept(side, share, kept):
    assert ImageInputs(shape=(side, side, 1), share=share).basis.shape == (side**2, kept**2)


def test_pictures_of_one_colour_and_extreme_ones_stay_finite_and_bounded():
    inputs = ImageInputs(shape=(4, 4, 1))
    pictures = np.stack([np.zeros(16), np.ones(16), np.full(16, 0.3), np.eye(16)[0] / 255])
    seen = inputs.from_records(pictures.astype(np.float32))
    assert np.isfinite(seen).all()
    assert np.linalg.norm(seen, axis=1).max() <= 4 * (1 + 1e-6)
    np.testing.assert_array_equal(seen[0], 0)
