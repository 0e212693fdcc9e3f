"""Discriminators: networks that tell records of a class from made-up ones.

Plain arrays and a function of them, because thousands are trained side by side. Nothing is
normalised over a batch: what a network says of one record depends on that record alone. Every layer
is given the class beside its inputs, one-hot, as in Appendix A.6 of G-PATE.

For tables fully connected layers; for pictures a convolution of 5 × 5 with stride 2, as a product
with patches, and a fully connected layer, or fully connected layers only. The paper's for 28 × 28
pixels, `channels=32, hidden=256`, has 1.6 million weights. The small ones see pictures at half the
size and have 14 thousand.
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
    """What is trained: `logits(init(key), seen(x), y)`."""

    def seen(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """What it sees of records: the same affine function of each, without weights, so that what
        is seen of the records and of directions can be kept."""
        ...

    def init(self, key: PRNGKeyArray) -> Weights:
        """Untrained weights."""
        ...

    def logits(
        self, weights: Weights, seen: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Positive for what looks like a record of its class."""
        ...

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        ...

    @property
    def multiplications(self) -> int:
        """For one record, forwards."""
        ...

    @property
    def numbers_a_record(self) -> int:
        """How many numbers are in memory for a record while its gradient is taken."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfRows:
    """Fully connected layers of these `widths`, for rows of `dimension` numbers in [0, 1]."""

    dimension: int
    classes: int
    widths: tuple[int, ...] = (64, 32)

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Each layer has the class among its inputs."""
        sizes = [self.dimension, *self.widths, self.classes]
        return [(i + self.classes, o) for i, o in itertools.pairwise(sizes)]

    @property
    def multiplications(self) -> int:
        """One a weight."""
        return sum(i * o for i, o in self.sides)

    @property
    def numbers_a_record(self) -> int:
        """Inputs and outputs of all layers, forwards and backwards."""
        return 2 * sum(i + o for i, o in self.sides)

    def init(self, key: PRNGKeyArray) -> Weights:
        """Random."""
        return _init(self.sides, key)

    def seen(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """Numbers about zero."""
        return 2 * x - 1

    def logits(
        self, weights: Weights, seen: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Leaky ReLU in between."""
        return _dense(weights, seen, y)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfPictures:
    """A convolution and a fully connected layer, for pictures of `shape` with pixels in [0, 1].

    `pooled` pixels along a side are averaged before.
    """

    shape: tuple[int, int, int]
    classes: int
    channels: int = 8
    hidden: int = 32
    pooled: int = 1

    @property
    def _seen(self) -> tuple[int, int]:
        return self.shape[0] // self.pooled, self.shape[1] // self.pooled

    @property
    def _mapped(self) -> tuple[int, int]:
        return -(-self._seen[0] // STRIDE), -(-self._seen[1] // STRIDE)

    @property
    def sides(self) -> list[tuple[int, int]]:
        """A patch and the class to channels; all of the map and the class to the rest."""
        patch = SIDE**2 * self.shape[2]
        flat = math.prod(self._mapped) * self.channels
        return [
            (patch + self.classes, self.channels),
            (flat + self.classes, self.hidden),
            (self.hidden + self.classes, self.classes),
        ]

    @property
    def multiplications(self) -> int:
        """One a weight, and for filters one a place."""
        (patch, channels), *rest = self.sides
        return math.prod(self._mapped) * patch * channels + sum(i * o for i, o in rest)

    @property
    def numbers_a_record(self) -> int:
        """Patches, maps and layers, forwards and backwards."""
        (patch, channels), (flat, hidden), _ = self.sides
        return 2 * (math.prod(self._mapped) * (patch + 2 * channels) + 2 * flat + 2 * hidden)

    def init(self, key: PRNGKeyArray) -> Weights:
        """Random."""
        return _init(self.sides, key)

    def seen(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """Means over squares of pixels, about zero."""
        return pooled(x, self.shape, self.pooled)

    def logits(
        self, weights: Weights, seen: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Leaky ReLU in between."""
        (filters, shift), *rest = weights
        patches = self._patches(seen)
        # The class is the same at every place of a picture, so it is multiplied once.
        split = patches.shape[-1]
        of_class = y @ filters[split:] + shift
        found = patches @ filters[:split] + of_class[:, None, None]
        return _dense(rest, jax.nn.leaky_relu(found, LEAK).reshape(len(y), -1), y)

    def _patches(self, seen: Float[Array, "m s"]) -> Float[Array, "m p q i"]:
        """Every second patch of 5 × 5 pixels."""
        (down, right), edge = self._mapped, SIDE // 2
        x = seen.reshape(-1, *self._seen, self.shape[2])
        x = jnp.pad(x, ((0, 0), (edge, edge + 1), (edge, edge + 1), (0, 0)))
        return jnp.concatenate(
            [
                x[:, i : i + STRIDE * down : STRIDE, j : j + STRIDE * right : STRIDE]
                for i in range(SIDE)
                for j in range(SIDE)
            ],
            axis=-1,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfPixels:
    """Fully connected layers of these `widths`, for pictures of which `pooled` pixels along a side
    are averaged before."""

    shape: tuple[int, int, int]
    classes: int
    widths: tuple[int, ...] = (64,)
    pooled: int = 1

    @property
    def _rows(self) -> OfRows:
        height, width, channels = self.shape
        dimension = (height // self.pooled) * (width // self.pooled) * channels
        return OfRows(dimension=dimension, classes=self.classes, widths=self.widths)

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Each layer has the class among its inputs."""
        return self._rows.sides

    @property
    def multiplications(self) -> int:
        """One a weight."""
        return self._rows.multiplications

    @property
    def numbers_a_record(self) -> int:
        """Inputs and outputs of all layers, forwards and backwards."""
        return self._rows.numbers_a_record

    def init(self, key: PRNGKeyArray) -> Weights:
        """Random."""
        return self._rows.init(key)

    def seen(self, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
        """Means over squares of pixels, about zero."""
        return pooled(x, self.shape, self.pooled)

    def logits(
        self, weights: Weights, seen: Float[Array, "m s"], y: Float[Array, "m c"]
    ) -> Float[Array, " m"]:
        """Leaky ReLU in between."""
        return _dense(weights, seen, y)


Kind = Literal["small", "conv", "paper"]


def for_schema(schema: Schema, kind: Kind = "small") -> Discriminator:
    """For tables all kinds are one; for pictures small and fully connected, small, or the paper's.

    The small ones average pixels until about 14 along a side are left.
    """
    shape, classes = schema.image_shape if schema.is_image else None, len(schema.classes)
    if shape is None:
        return OfRows(dimension=schema.width, classes=classes)
    if kind == "paper":
        return OfPictures(shape=shape, classes=classes, channels=32, hidden=256)
    averaged = max(1, min(shape[:2]) // 14)
    small = OfPixels if kind == "small" else OfPictures
    return small(shape=shape, classes=classes, pooled=averaged)


def pooled(x: Float[Array, "m d"], shape: tuple[int, int, int], by: int) -> Float[Array, "m s"]:
    """Means over squares of `by` × `by` pixels, about zero; what is left at edges is cut off."""
    height, width, channels = shape
    h, w = height // by, width // by
    x = (2 * x - 1).reshape(-1, height, width, channels)[:, : h * by, : w * by]
    return jnp.mean(x.reshape(-1, h, by, w, by, channels), axis=(2, 4)).reshape(len(x), -1)


def size(discriminator: Discriminator) -> int:
    """The number of weights."""
    return sum((i + 1) * o for i, o in discriminator.sides)


def _init(sides: list[tuple[int, int]], key: PRNGKeyArray) -> Weights:
    draw, keys = jax.nn.initializers.he_normal(), jax.random.split(key, len(sides))
    return [(draw(k, side), jnp.zeros(side[1])) for k, side in zip(keys, sides, strict=True)]


def _dense(weights: Weights, x: Float[Array, "m i"], y: Float[Array, "m c"]) -> Float[Array, " m"]:
    for number, (weight, bias) in enumerate(weights):
        x = jax.nn.leaky_relu(x, LEAK) if number else x
        split = x.shape[1]
        x = x @ weight[:split] + (y @ weight[split:] + bias)
    return jnp.sum(x * y, axis=1)
