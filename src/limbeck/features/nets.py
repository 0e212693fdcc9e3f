"""Untrained networks as pairs of plain functions: parameters from a key, logits from parameters.

Initial weights only, so no data and no budget were spent on them. All are drawn in single
precision whatever the precision of the caller, so that a key means the same network everywhere.

`lenet`            5×5 convolutions of 6 and 16 channels, each averaged over 2×2; dense layers of
                   120, 84 and 10. Tanh, as in the original: it makes the tangent features smooth
                   in the image too.
`resnet18`         3×3 stem for small images, four stages of two blocks, 64 to 512 channels. ReLU.
                   Batch normalisation of an untrained network in evaluation mode is the identity,
                   so there is none.
`fully_connected`  one hidden layer. ReLU.

Weights have variance 2 over fan-in before a ReLU (He) and 1 over fan-in elsewhere: each layer keeps
the mean square of its input. A residual sum x + branch(x) would double it in each of the 8 blocks;
branches are divided by √8, which bounds the growth by (1 + 1/8)⁸ < e.

A convolution is written as a matrix product with the patches of the image. It costs what
XLA's convolution costs, but its gradient for one record alone, the tangent feature, is a matrix
product too; XLA has only a naive loop for that one on CPUs, eight to thirty times slower.

References
----------
LeCun et al. 1998 (LeNet-5); He et al. 2015, 2016; Hayou et al. 2021 (scaled residual branches).
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

Params = Any
Images = Float[Array, "n h w c"]
Logits = Float[Array, "n 10"]
Shape = tuple[int, int, int]

CLASSES = 10
WIDTHS = (64, 128, 256, 512)
BRANCH = 1 / math.sqrt(2 * len(WIDTHS))


class Net(NamedTuple):
    """A network: `init(key, shape of an image)` gives its parameters, `apply` the logits."""

    init: Callable[[Key[Array, ""], Shape], Params]
    apply: Callable[[Params, Images], Logits]


def _init_lenet(key: Key[Array, ""], shape: Shape) -> Params:
    height, width, channels = shape
    left = ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
    shapes = [(5, 5, channels, 6), (5, 5, 6, 16), (16 * left, 120), (120, 84), (84, CLASSES)]
    weights = _draw(key, [_Weight(shape, gain=1) for shape in shapes])
    return [(w, jnp.zeros(w.shape[-1], w.dtype)) for w in weights]


def _apply_lenet(params: Params, images: Images) -> Logits:
    (w1, b1), (w2, b2), *dense = params
    x = _halve(jnp.tanh(_convolve(images, w1, padding=2) + b1))
    x = _halve(jnp.tanh(_convolve(x, w2) + b2))
    x = x.reshape(len(x), -1)
    for w, b in dense[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ dense[-1][0] + dense[-1][1]


def _init_resnet18(key: Key[Array, ""], shape: Shape) -> Params:
    specs: Params = {"stem": _Weight((3, 3, shape[2], WIDTHS[0]), gain=2), "blocks": []}
    for before, after in itertools.pairwise((WIDTHS[0], *WIDTHS)):
        for width in (before, after):
            block = {
                "first": _Weight((3, 3, width, after), gain=2),
                "second": _Weight((3, 3, after, after), gain=1),
            }
            if width != after:
                block["shortcut"] = _Weight((1, 1, width, after), gain=2)
            specs["blocks"].append(block)
    specs["dense"] = _Weight((WIDTHS[-1], CLASSES), gain=1)
    return {**_draw(key, specs), "bias": jnp.zeros(CLASSES, jnp.float32)}


def resnet18_layers(params: Params, images: Images) -> list[Images]:
    """The outputs of the stem and of the eight blocks."""
    outputs = [jax.nn.relu(_convolve(images, params["stem"], padding=1))]
    for block in params["blocks"]:
        outputs.append(_residual(block, outputs[-1]))
    return outputs


def _residual(block: Params, x: Images) -> Images:
    stride = 2 if "shortcut" in block else 1
    branch = jax.nn.relu(_convolve(x, block["first"], stride=stride, padding=1))
    branch = _convolve(branch, block["second"], padding=1)
    kept = _convolve(x, block["shortcut"], stride=stride) if "shortcut" in block else x
    return jax.nn.relu(kept + BRANCH * branch)


def _apply_resnet18(params: Params, images: Images) -> Logits:
    pooled = resnet18_layers(params, images)[-1].mean(axis=(1, 2))
    return pooled @ params["dense"] + params["bias"]


def init_fully_connected(key: Key[Array, ""], shape: Shape, width: int = 800) -> Params:
    """Parameters of the net with one hidden layer of `width` units."""
    specs = {
        "w1": _Weight((math.prod(shape), width), gain=2),
        "w2": _Weight((width, CLASSES), gain=1),
    }
    biases = {"b1": jnp.zeros(width, jnp.float32), "b2": jnp.zeros(CLASSES, jnp.float32)}
    return {**_draw(key, specs), **biases}


def _apply_fully_connected(params: Params, images: Images) -> Logits:
    hidden = images.reshape(len(images), -1) @ params["w1"] + params["b1"]
    return jax.nn.relu(hidden) @ params["w2"] + params["b2"]


class _Weight(NamedTuple):
    shape: tuple[int, ...]
    gain: int


def _draw(key: Key[Array, ""], specs: Params) -> Params:
    """Normal weights of variance gain / fan-in, out of one draw: a draw is slow to compile."""
    leaves, tree = jax.tree.flatten(specs, is_leaf=lambda node: isinstance(node, _Weight))
    ends = np.cumsum([math.prod(leaf.shape) for leaf in leaves])
    pieces = jnp.split(jax.random.normal(key, (int(ends[-1]),), jnp.float32), ends[:-1])
    scales = [math.sqrt(leaf.gain / math.prod(leaf.shape[:-1])) for leaf in leaves]
    weights = [
        scale * piece.reshape(leaf.shape)
        for leaf, scale, piece in zip(leaves, scales, pieces, strict=True)
    ]
    return jax.tree.unflatten(tree, weights)


def _convolve(
    x: Images, w: Float[Array, "a b c d"], *, stride: int = 1, padding: int = 0
) -> Images:
    """All patches of x, as rows of a matrix, times the weights as a matrix."""
    edge = (padding, padding)
    x = jnp.pad(x, ((0, 0), edge, edge, (0, 0)))
    down, across = (
        np.arange(0, x.shape[axis + 1] - w.shape[axis] + 1, stride)[:, None]
        + np.arange(w.shape[axis])
        for axis in (0, 1)
    )
    patches = x[:, down[:, None, :, None], across[None, :, None, :]]
    return patches.reshape(*patches.shape[:3], -1) @ w.reshape(-1, w.shape[-1])


def _halve(x: Images) -> Images:
    """Means over 2×2; an odd last row or column is left out."""
    n, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).mean(axis=(2, 4))


lenet = Net(_init_lenet, _apply_lenet)
resnet18 = Net(_init_resnet18, _apply_resnet18)
fully_connected = Net(init_fully_connected, _apply_fully_connected)
