"""The CNN of G-PATE: two convolutions, dropout, and it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.errors import UserError
from limbeck.evaluate import networks
from limbeck.models.convnets import CNN, _dropped, _largest, _step, train


def test_the_papers_network_has_32_and_64_kernels():
    net = CNN((28, 28, 1), 10, jax.random.key(0))
    assert [f.shape[2:] for f in net.filters] == [(1, 32), (32, 64)]
    assert net.hidden.weight.shape == (128, 7 * 7 * 64)


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 8, 1), (5, 3, 1)])
def test_any_size_of_pictures_has_one_score_a_class(shape):
    assert CNN(shape, 10, jax.random.key(0))(jnp.zeros((2, *shape))).shape == (2, 10)


def test_the_largest_of_four_pixels_is_kept():
    x = jnp.arange(15.0).reshape(1, 3, 5, 1)
    np.testing.assert_array_equal(_largest(x)[0, :, :, 0], [[6, 8, 9], [11, 13, 14]])


def test_a_quarter_is_dropped_and_the_mean_is_kept():
    # 10⁵ draws: the share has a deviation of 0.0014, six of which fail once in 10⁸.
    x = np.asarray(_dropped(jnp.ones(100_000), jax.random.key(0)))
    assert np.mean(x == 0) == pytest.approx(0.25, abs=0.009)
    np.testing.assert_allclose(np.unique(x), [0, 4 / 3], rtol=1e-6)
    assert _dropped(jnp.ones(3), None).tolist() == [1, 1, 1]


def test_it_learns_from_a_release(picture_task, monkeypatch):
    monkeypatch.setattr(networks, "FAST_CNN", networks.CNN._replace(steps=100))
    scores = {s.trained_on: s.value for s in networks.cnn(picture_task) if s.metric == "accuracy"}
    assert scores["release"] > 0.8
    assert scores["real"] > 0.9


def test_nothing_recompiles_from_one_training_to_the_next(picture_task):
    x, y = picture_task.release_rows
    for seed in range(3):
        once = networks.CNN._replace(steps=2)
        train(x, np.eye(3, dtype=np.float32)[y], (12, 12, 1), once, seed)
        if not seed:
            compiled = _step._cached._cache_size()
    assert _step._cached._cache_size() == compiled


def test_tables_have_no_pixels(table_task):
    with pytest.raises(UserError, match="tabular"):
        networks.cnn(table_task)
