"""Pieces worked on in threads: in their order, in the caller's precision, or not at all."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.batching import in_blocks, padded, side_by_side
from limbeck.features.base import features_of
from limbeck.features.scattering import Scattering


def test_results_come_in_the_order_of_the_items():
    assert list(side_by_side(lambda i: i * i, range(50))) == [i * i for i in range(50)]


def test_threads_have_the_precision_of_their_caller():
    def dtypes():
        return {str(found.dtype) for found in side_by_side(lambda i: jnp.ones(3) * i, [0.5, 1.5])}

    assert dtypes() == {"float32"}
    with jax.enable_x64(True):
        assert dtypes() == {"float64"}


def test_after_an_error_nothing_more_is_begun():
    begun, stop = [], threading.Event()

    def work(i):
        begun.append(i)
        if i == 0:
            raise KeyboardInterrupt
        stop.wait(0.05)

    with pytest.raises(KeyboardInterrupt):
        list(side_by_side(work, range(1000)))
    assert len(begun) < 500


def test_features_are_those_of_one_piece_after_another():
    phi = Scattering(shape=(9, 10, 3))
    x = np.random.default_rng(0).random((50, 270), np.float32)
    apart = [features_of(phi, x[i : i + 8]) for i in range(0, 50, 8)]
    np.testing.assert_array_equal(features_of(phi, x), np.concatenate(apart))


def test_blocks_have_one_shape_and_cover_all_rows():
    shapes = set()

    def double(block, other):
        shapes.add((block.shape, other.shape))
        return 2 * block + other

    x = np.arange(14.0).reshape(7, 2)
    np.testing.assert_array_equal(in_blocks(double, 3, x, x), 3 * x)
    assert shapes == {((3, 2), (3, 2))}
    assert in_blocks(double, 3, x[:0], x[:0]).shape == (0, 2)
    assert padded(x, 7) is x


def test_few_items_are_in_memory_at_a_time():
    taken = []

    def items():
        for i in range(100):
            taken.append(i)
            yield i

    results = side_by_side(lambda i: i, items())
    next(results)
    assert len(taken) < 20
    results.close()
