"""The ConvNet is the paper's, and learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_up import bundle_of, changed

from limbeck.errors import UserError
from limbeck.evaluate import networks
from limbeck.models.convnets import ConvNet, Training, _block, _halved, _moved, _step, train

SMALL = Training(width=8, steps=150, rate=0.05)


def test_a_block_is_convolution_instance_normalisation_relu_and_means():
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (2, 6, 6, 3))
    filters = jax.random.normal(keys[1], (3, 3, 3, 4))
    scale, shift = jnp.arange(1.0, 5.0), jnp.array([0.0, 1.0, -1.0, 2.0])
    found = np.asarray(_block(x, filters, scale, shift))
    padded = np.pad(np.asarray(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
    plain = np.zeros((2, 6, 6, 4))
    for i in range(6):
        for j in range(6):
            piece = padded[:, i : i + 3, j : j + 3]
            plain[:, i, j] = np.einsum("nhwc,hwco->no", piece, np.asarray(filters))
    mean, variance = plain.mean((1, 2), keepdims=True), plain.var((1, 2), keepdims=True)
    plain = np.maximum((plain - mean) / np.sqrt(variance + 1e-5) * scale + shift, 0)
    plain = plain.reshape(2, 3, 2, 3, 2, 4).mean((2, 4))
    np.testing.assert_allclose(found, plain, atol=1e-4)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 8, 1), (5, 3, 1)])
def test_any_size_of_pictures_has_one_score_a_class(shape):
    net = ConvNet(shape, 10, 4, jax.random.key(0))
    assert net(jnp.zeros((2, *shape))).shape == (2, 10)


def test_the_papers_network_has_three_blocks_of_128():
    net = ConvNet((28, 28, 1), 10, Training().width, jax.random.key(0))
    assert [f.shape for f in net.filters] == [(3, 3, 1, 128), (3, 3, 128, 128), (3, 3, 128, 128)]
    assert net.head.weight.shape == (10, 128 * 3 * 3)


def test_a_side_of_one_pixel_is_left_as_it_is():
    assert _halved(jnp.ones((1, 1, 7, 2))).shape == (1, 1, 3, 2)


def test_a_moved_picture_of_one_colour_is_the_same():
    x = jnp.full((9, 9, 2), 0.3)
    np.testing.assert_allclose(_moved(x, jax.random.key(0)), x, atol=1e-6)


def test_pictures_are_moved_a_little_and_differently():
    x = jnp.zeros((14, 14, 1)).at[7, 7].set(1)
    moved = np.asarray(jax.vmap(_moved, (None, 0))(x, jax.random.split(jax.random.key(0), 50)))
    weights = moved.sum(axis=(1, 2, 3), keepdims=True)
    rows = (moved * np.arange(14)[:, None, None] / np.maximum(weights, 1e-9)).sum((1, 2, 3))
    assert np.abs(rows - 7).max() < 2
    assert rows.std() > 0.2


@pytest.mark.parametrize("evaluator", [networks.convnet, networks.convnet_soft])
def test_it_learns_from_a_release(picture_task, monkeypatch, evaluator):
    monkeypatch.setattr(networks, "FAST_CONVNET", SMALL)
    scores = {s.trained_on: s.value for s in evaluator(picture_task) if s.metric == "accuracy"}
    assert scores["release"] > 0.8
    assert scores["real"] > 0.9


def test_soft_labels_are_regressed_on_and_hard_ones_are_not(picture_task, monkeypatch):
    """Labels with the classes turned round by a weight below zero."""
    monkeypatch.setattr(networks, "FAST_CONVNET", SMALL)
    bundle = picture_task.bundle
    turned = bundle_of(bundle.schema, *picture_task.release_rows)
    object.__setattr__(turned, "y_soft", bundle.y_soft * -1 + 2 / 3)
    task = changed(picture_task, bundle=turned, real=None)
    accuracy = {s.metric: s.value for s in networks.convnet_soft(task)}["accuracy"]
    assert accuracy < 0.2


def test_nothing_recompiles_from_one_training_to_the_next(picture_task):
    x, y = picture_task.release_rows
    once = Training(width=4, steps=2)
    for seed in range(3):
        train(x, np.eye(3, dtype=np.float32)[y], (12, 12, 1), once, seed)
        if not seed:
            compiled = _step._cached._cache_size()
    assert _step._cached._cache_size() == compiled


def test_tables_have_no_pixels(table_task):
    with pytest.raises(UserError, match="tabular"):
        networks.convnet(table_task)
