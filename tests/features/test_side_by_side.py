"""Pieces worked on in threads: in their order, in the caller's precision, or not at all."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features.base import features_of, side_by_side
from limbeck.features.scattering import Scattering


def test_results_come_in_the_order_of_the_items():
    assert side_by_side(lambda i: i * i, range(50)) == [i * i for i in range(50)]


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
        side_by_side(work, range(1000))
    assert len(begun) < 500


def test_features_are_those_of_one_piece_after_another():
    phi = Scattering(shape=(9, 10, 3))
    x = np.random.default_rng(0).random((50, 270), np.float32)
    apart = [features_of(phi, x[i : i + 8]) for i in range(0, 50, 8)]
    np.testing.assert_array_equal(features_of(phi, x), np.concatenate(apart))
