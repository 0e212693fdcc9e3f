"""What is promised of the untrained networks: sizes, scales, and the same numbers anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limbeck.features import nets


def images(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 2), (2, 1)])
def test_a_convolution_is_a_convolution(stride, padding):
    x, w = images(2, 9, 8, 3), images(3, 5, 3, 4)
    theirs = jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    ours = nets._convolve(x, w, stride=stride, padding=padding)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_networks_have_the_published_numbers_of_parameters():
    """LeNet-5 has 61 706; torchvision's ResNet18 has 9 600 in its batch norms and a 7×7 stem."""

    def count(net, shape):
        params = jax.eval_shape(lambda: net.init(jax.random.key(0), shape))
        return sum(leaf.size for leaf in jax.tree.leaves(params))

    assert count(nets.lenet, (28, 28, 1)) == 61_706
    theirs, norms, classes = 11_689_512, 9_600, 990 * 513
    assert count(nets.resnet18, (32, 32, 3)) == theirs - norms - classes - (49 - 9) * 3 * 64


def test_activations_of_the_resnet_neither_explode_nor_vanish():
    """The last stage sees one position here, and eight of its nine weights see padding."""
    x = images(4, 8, 8, 2)
    params = nets.resnet18.init(jax.random.key(0), (8, 8, 2))
    squares = [float(jnp.mean(y**2)) for y in jax.jit(nets.resnet18_layers)(params, x)]
    assert len(squares) == 9
    assert min(squares) > 0.3
    assert max(squares) < 2


def test_a_key_means_the_same_network_in_either_precision():
    single = nets.lenet.init(jax.random.key(5), (16, 16, 1))
    with jax.enable_x64(True):
        double = nets.lenet.init(jax.random.key(5), (16, 16, 1))
    jax.tree.map(np.testing.assert_array_equal, single, double)
    assert {leaf.dtype for leaf in jax.tree.leaves(double)} == {np.dtype(np.float32)}
