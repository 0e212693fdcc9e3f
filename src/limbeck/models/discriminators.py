"""Discriminators: networks that tell records of a class from synthetic ones.

They are plain arrays and a function of them, because thousands are trained side by side. Nothing
is normalised over a batch: the output for one record depends on that record alone. Every layer
is given the class, one-hot, beside its inputs, as in Appendix A.6 of G-PATE.

Tables have fully connected layers. Images have a 5 × 5 convolution with stride 2, as a product with
patches, and a fully connected layer, or fully connected layers only. The paper's network for
28 × 28 pixels, `channels=32, hidden=256`, has 1.6 million weights. The small ones see images at
half the size and have 14 thousand.
"""

import dataclasses
import itertools
import math
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from limbeck.data.schema import Schema

Weights = list[tuple[Float[Array, "i o"], Float[Array, " o"]]]

SIDE, STRIDE = 5, 2
LEAK = 0.2


class Discriminator(Protocol):
    """A network `logits(init(key), preprocess(x), y)`."""

    def preprocess(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """The inputs of the network: the same affine function of each record, without weights, so
        that the inputs of records and of directions can be kept."""
        ...

    def init(self, key: PRNGKeyArray) -> Weights:
        """Untrained weights."""
        ...

    def logits(
        self, weights: Weights, inputs: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Positive for what looks like a record of its class."""
        ...

    @property
    def layer_shapes(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        ...

    @property
    def macs(self) -> int:
        """Multiplications of a forward pass for one record."""
        ...

    @property
    def activations_per_record(self) -> int:
        """Numbers in memory for one record while its gradient is computed."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class MLP:
    """Fully connected layers of these `widths`, for rows of `dimension` numbers in [0, 1]."""

    dimension: int
    classes: int
    widths: tuple[int, ...] = (64, 32)

    @property
    def layer_shapes(self) -> list[tuple[int, int]]:
        """Each layer has the class among its inputs."""
        sizes = [self.dimension, *self.widths, self.classes]
        return [(i + self.classes, o) for i, o in itertools.pairwise(sizes)]

    @property
    def macs(self) -> int:
        """One for each weight."""
        return sum(i * o for i, o in self.layer_shapes)

    @property
    def activations_per_record(self) -> int:
        """Inputs and outputs of all layers, forwards and backwards."""
        return 2 * sum(i + o for i, o in self.layer_shapes)

    def init(self, key: PRNGKeyArray) -> Weights:
        """He-normal weights and zero biases."""
        return _init(self.layer_shapes, key)

    def preprocess(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """The records scaled to [-1, 1]."""
        return 2 * x - 1

    def logits(
        self, weights: Weights, inputs: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Dense layers with leaky ReLU."""
        return _dense(weights, inputs, y)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PooledMLP:
    """An `MLP` on images of which `pooled` × `pooled` pixels are averaged first."""

    shape: tuple[int, int, int]
    classes: int
    widths: tuple[int, ...] = (64,)
    pooled: int = 1

    @property
    def _mlp(self) -> MLP:
        height, width, channels = self.shape
        dimension = (height // self.pooled) * (width // self.pooled) * channels
        return MLP(dimension=dimension, classes=self.classes, widths=self.widths)

    @property
    def layer_shapes(self) -> list[tuple[int, int]]:
        """Those of the MLP."""
        return self._mlp.layer_shapes

    @property
    def macs(self) -> int:
        """Those of the MLP."""
        return self._mlp.macs

    @property
    def activations_per_record(self) -> int:
        """Those of the MLP."""
        return self._mlp.activations_per_record

    def init(self, key: PRNGKeyArray) -> Weights:
        """He-normal weights and zero biases."""
        return self._mlp.init(key)

    def preprocess(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """Means over squares of pixels, in [-1, 1]."""
        return pooled(x, self.shape, self.pooled)

    def logits(
        self, weights: Weights, inputs: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Dense layers with leaky ReLU."""
        return _dense(weights, inputs, y)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvNet:
    """A convolution and a fully connected layer, for images of `shape` with pixels in [0, 1].

    `pooled` × `pooled` pixels are averaged first.
    """

    shape: tuple[int, int, int]
    classes: int
    channels: int = 8
    hidden: int = 32
    pooled: int = 1

    @property
    def _pooled(self) -> tuple[int, int]:
        return self.shape[0] // self.pooled, self.shape[1] // self.pooled

    @property
    def _mapped(self) -> tuple[int, int]:
        return -(-self._pooled[0] // STRIDE), -(-self._pooled[1] // STRIDE)

    @property
    def layer_shapes(self) -> list[tuple[int, int]]:
        """Patches to channels, the whole map to the hidden layer, and that to the classes."""
        patch = SIDE**2 * self.shape[2]
        flat = math.prod(self._mapped) * self.channels
        return [
            (patch + self.classes, self.channels),
            (flat + self.classes, self.hidden),
            (self.hidden + self.classes, self.classes),
        ]

    @property
    def macs(self) -> int:
        """One for each weight, and for filters one for each position."""
        (patch, channels), *rest = self.layer_shapes
        return math.prod(self._mapped) * patch * channels + sum(i * o for i, o in rest)

    @property
    def activations_per_record(self) -> int:
        """Patches, maps and layers, forwards and backwards."""
        (patch, channels), (flat, hidden), _ = self.layer_shapes
        return 2 * (math.prod(self._mapped) * (patch + 2 * channels) + 2 * flat + 2 * hidden)

    def init(self, key: PRNGKeyArray) -> Weights:
        """He-normal weights and zero biases."""
        return _init(self.layer_shapes, key)

    def preprocess(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """Means over squares of pixels, in [-1, 1]."""
        return pooled(x, self.shape, self.pooled)

    def logits(
        self, weights: Weights, inputs: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """A convolution and two dense layers, with leaky ReLU."""
        (filters, shift), *rest = weights
        patches = self._patches(inputs)
        # The class is the same at every position of an image, so it is multiplied once.
        split = patches.shape[-1]
        of_class = y @ filters[split:] + shift
        maps = patches @ filters[:split] + of_class[:, None, None]
        return _dense(rest, jax.nn.leaky_relu(maps, LEAK).reshape(len(y), -1), y)

    def _patches(self, inputs: Float[Array, "m s"]) -> Float[Array, "m p q i"]:
        """Every second patch of 5 × 5 pixels."""
        (down, right), edge = self._mapped, SIDE // 2
        x = inputs.reshape(-1, *self._pooled, self.shape[2])
        x = jnp.pad(x, ((0, 0), (edge, edge + 1), (edge, edge + 1), (0, 0)))
        return jnp.concatenate(
            [
                x[:, i : i + STRIDE * down : STRIDE, j : j + STRIDE * right : STRIDE]
                for i in range(SIDE)
                for j in range(SIDE)
            ],
            axis=-1,
        )


Kind = Literal["small", "conv", "paper"]


def for_schema(schema: Schema, kind: Kind = "small") -> Discriminator:
    """An `MLP` for tables; for images a small dense network, a small convolution, or the paper's.

    The small ones average pixels until about 14 along a side are left.
    """
    classes = len(schema.classes)
    if not schema.is_image:
        return MLP(dimension=schema.width, classes=classes)
    shape = schema.image_shape
    if kind == "paper":
        return ConvNet(shape=shape, classes=classes, channels=32, hidden=256)
    small = PooledMLP if kind == "small" else ConvNet
    return small(shape=shape, classes=classes, pooled=max(1, min(shape[:2]) // 14))


def pooled(x: Float[Array, "m d"], shape: tuple[int, int, int], by: int) -> Float[Array, "m s"]:
    """Means over squares of `by` × `by` pixels, in [-1, 1]; incomplete squares are cut off."""
    height, width, channels = shape
    h, w = height // by, width // by
    x = (2 * x - 1).reshape(-1, height, width, channels)[:, : h * by, : w * by]
    return jnp.mean(x.reshape(-1, h, by, w, by, channels), axis=(2, 4)).reshape(len(x), -1)


def size(discriminator: Discriminator) -> int:
    """The number of weights and biases."""
    return sum((i + 1) * o for i, o in discriminator.layer_shapes)


def _init(shapes: list[tuple[int, int]], key: PRNGKeyArray) -> Weights:
    draw, keys = jax.nn.initializers.he_normal(), jax.random.split(key, len(shapes))
    return [(draw(k, shape), jnp.zeros(shape[1])) for k, shape in zip(keys, shapes, strict=True)]


def _dense(weights: Weights, x: Float[Array, "m i"], y: Float[Array, "m c"]) -> Float[Array, " m"]:
    for number, (weight, bias) in enumerate(weights):
        x = jax.nn.leaky_relu(x, LEAK) if number else x
        split = x.shape[1]
        x = x @ weight[:split] + (y @ weight[split:] + bias)
    return jnp.sum(x * y, axis=1)
