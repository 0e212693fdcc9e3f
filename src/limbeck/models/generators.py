"""Generators: networks from a random latent and a class to a record with numbers in [0, 1].

`ImageGenerator` upsamples maps by transposed convolutions, and by residual blocks for colour.
`TableGenerator` is fully connected: numbers come out of a sigmoid, and each categorical column out
of a softmax of its own, so that the output is a row of shares.

Both normalise over the batch in training. Afterwards the means and variances of one large batch
are frozen, and a record depends on its own latent alone.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import Schema

# One (mean, variance) for each normalisation.
Statistics = list[tuple[Float[Array, " c"], Float[Array, " c"]]]
HIDDEN = 200
# Channels of the maps of colour images; widths of the layers for tables.
COLOUR, ROWS = (32, 16), (200, 200)


class BatchNorm:
    """Normalises over the batch and records its statistics, or uses frozen ones."""

    def __init__(self, frozen: Statistics | None) -> None:
        self._frozen, self.statistics = frozen, Statistics()

    def __call__(self, x: Float[Array, "*n c"]) -> Float[Array, "*n c"]:
        """Scale each channel to mean zero and variance one."""
        if self._frozen is None:
            axes = tuple(range(x.ndim - 1))
            mean, variance = jnp.mean(x, axis=axes), jnp.var(x, axis=axes)
        else:
            mean, variance = self._frozen[len(self.statistics)]
        self.statistics.append((mean, variance))
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5)


class Affine(eqx.Module):
    """A linear layer with bias for a batch of rows."""

    weight: Float[Array, "i o"]
    bias: Float[Array, " o"]

    def __init__(self, i: int, o: int, key: PRNGKeyArray) -> None:
        self.weight = jax.nn.initializers.he_normal()(key, (i, o))
        self.bias = jnp.zeros(o)

    def __call__(self, x: Float[Array, "n i"]) -> Float[Array, "n o"]:
        """The outputs of a batch."""
        return x @ self.weight + self.bias


class ResidualBranch(eqx.Module):
    """The convolution before an upsampling and the shortcut around both, as in a residual block."""

    filters: Float[Array, "3 3 i i"]
    mixed: Float[Array, "i o"]

    def __init__(self, i: int, o: int, key: PRNGKeyArray) -> None:
        one, two = jax.random.split(key)
        self.filters = jax.nn.initializers.he_normal()(one, (3, 3, i, i))
        self.mixed = jax.nn.initializers.lecun_normal()(two, (i, o))

    def __call__(
        self, x: Float[Array, "n h w i"], normed: Float[Array, "n h w i"], norms: BatchNorm
    ) -> tuple[Float[Array, "n p q o"], Float[Array, "n h w i"]]:
        """The shortcut, upsampled twofold, and the maps that are still to be upsampled."""
        around = jnp.repeat(jnp.repeat(x @ self.mixed, 2, axis=1), 2, axis=2)
        layout = ("NHWC", "HWIO", "NHWC")
        inner = jax.lax.conv_general_dilated(
            normed, self.filters, (1, 1), "SAME", dimension_numbers=layout
        )
        return around, jax.nn.relu(norms(inner))


class ImageGenerator(eqx.Module):
    """Latents to images of `shape`.

    A hidden layer makes a map with the first of `channels`, and each of the others belongs to a map
    of twice the height and width. There is one hidden layer: deeper generators match moments better
    but give worse training data.

    For colour, each upsampling is a residual block: a 3 × 3 convolution precedes it, and the
    shortcut is the map itself, repeated to twice the size, with its channels mixed.
    """

    shape: tuple[int, int, int] = eqx.field(static=True)
    channels: tuple[int, ...] = eqx.field(static=True)
    layers: list[Affine]
    filters: list[Float[Array, "i 4 4 o"]]
    blocks: list[ResidualBranch]
    scales: list[Float[Array, " c"]]
    shifts: list[Float[Array, " c"]]

    def __init__(
        self,
        shape: tuple[int, int, int],
        inputs: int,
        channels: tuple[int, ...],
        key: PRNGKeyArray,
    ) -> None:
        dense, spread = jax.random.split(key)
        self.shape, self.channels = shape, channels
        sides = [inputs, HIDDEN, math.prod(self._start) * channels[0]]
        keys = jax.random.split(dense, 2)
        self.layers = [Affine(i, o, k) for i, o, k in zip(sides, sides[1:], keys, strict=False)]
        draw = jax.nn.initializers.he_normal(in_axis=0, out_axis=3)
        maps = [*channels, shape[2]]
        keys = jax.random.split(spread, len(channels))
        self.filters = [
            draw(k, (i, 4, 4, o)) for i, o, k in zip(maps, maps[1:], keys, strict=False)
        ]
        residual = zip(maps, maps[1:], keys, strict=False) if shape[2] > 1 else ()
        self.blocks = [ResidualBranch(i, o, jax.random.fold_in(k, 1)) for i, o, k in residual]
        normed = [HIDDEN, *channels]
        self.scales = [jnp.ones(side) for side in normed]
        self.shifts = [jnp.zeros(side) for side in [*normed, shape[2]]]

    @property
    def _start(self) -> tuple[int, int]:
        scale = 2 ** len(self.channels)
        return -(-self.shape[0] // scale), -(-self.shape[1] // scale)

    def __call__(
        self, codes: Float[Array, "n i"], frozen: Statistics | None = None
    ) -> tuple[Float[Array, "n d"], Statistics]:
        """Records and the statistics of the batch."""
        norms = BatchNorm(frozen)

        scaled = iter(zip(self.scales, self.shifts, strict=False))

        def normed(x: Float[Array, "*n c"]) -> Float[Array, "*n c"]:
            scale, shift = next(scaled)
            return jax.nn.relu(norms(x) * scale + shift)

        x = self.layers[1](normed(self.layers[0](codes)))
        x = x.reshape(len(codes), *self._start, self.channels[0])
        for i, filters in enumerate(self.filters):
            inner = normed(x)
            if self.blocks:
                around, inner = self.blocks[i](x, inner, norms)
                x = around + upsampled(inner, filters)
            else:
                x = upsampled(inner, filters)
        x = x[:, : self.shape[0], : self.shape[1]] + self.shifts[-1]
        return jax.nn.sigmoid(x).reshape(len(codes), -1), norms.statistics


def upsampled(
    x: Float[Array, "n h w i"], filters: Float[Array, "i 4 4 o"]
) -> Float[Array, "n p q o"]:
    """A transposed convolution with stride 2: every pixel adds its own 4×4 patch to the output.

    Computed as one matrix product and four sums of shifted maps, which is many times as fast on a
    CPU as a convolution with few channels.
    """
    n, h, w, i = x.shape
    o = filters.shape[3]
    patches = (x.reshape(-1, i) @ filters.reshape(i, -1)).reshape(n, h, w, 2, 2, 2, 2, o)
    # Row 2r + a of the patch is row a of the r-th pair of rows: that of the pixel, or the next.
    pairs = jnp.zeros((n, h + 1, w + 1, 2, 2, o), x.dtype)
    for down in range(2):
        for right in range(2):
            part = patches[:, :, :, down, :, right]
            edges = ((0, 0), (down, 1 - down), (right, 1 - right), (0, 0), (0, 0), (0, 0))
            pairs = pairs + jnp.pad(part, edges)
    whole = pairs.transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h + 2, 2 * w + 2, o)
    return whole[:, 1:-1, 1:-1]


class TableGenerator(eqx.Module):
    """Latents to encoded rows; `columns` are widths and whether a column has its own softmax."""

    columns: tuple[tuple[int, bool], ...] = eqx.field(static=True)
    layers: list[Affine]
    scales: list[Float[Array, " c"]]
    shifts: list[Float[Array, " c"]]

    def __init__(
        self,
        columns: tuple[tuple[int, bool], ...],
        inputs: int,
        widths: tuple[int, ...],
        key: PRNGKeyArray,
    ) -> None:
        sides = [inputs, *widths, sum(width for width, _ in columns)]
        keys = jax.random.split(key, len(sides) - 1)
        self.columns = columns
        self.layers = [Affine(i, o, k) for i, o, k in zip(sides, sides[1:], keys, strict=False)]
        self.scales = [jnp.ones(width) for width in widths]
        self.shifts = [jnp.zeros(width) for width in widths]

    def __call__(
        self, codes: Float[Array, "n i"], frozen: Statistics | None = None
    ) -> tuple[Float[Array, "n d"], Statistics]:
        """Records and the statistics of the batch."""
        norms, x = BatchNorm(frozen), codes
        for layer, scale, shift in zip(self.layers, self.scales, self.shifts, strict=False):
            x = jax.nn.relu(norms(layer(x)) * scale + shift)
        x, start, parts = self.layers[-1](x), 0, []
        for width, is_choice in self.columns:
            part = x[:, start : start + width]
            parts.append(jax.nn.softmax(part, axis=1) if is_choice else jax.nn.sigmoid(part))
            start += width
        return jnp.concatenate(parts, axis=1), norms.statistics


Generator = ImageGenerator | TableGenerator


class GeneratorConfig(NamedTuple):
    """The size of a generator: the dimension of its latents, and the widths of its layers."""

    latent_dim: int
    widths: tuple[int, ...]

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "GeneratorConfig":
        """Read the configuration of a saved generator."""
        return cls(int(config["latent_dim"]), tuple(map(int, config["widths"])))


def net_for(schema: Schema, config: GeneratorConfig, key: PRNGKeyArray) -> Generator:
    """An untrained generator of records that the schema describes."""
    inputs = config.latent_dim + len(schema.classes)
    if schema.is_image:
        return ImageGenerator(schema.image_shape, inputs, config.widths, key)
    columns = tuple((c.width, c.kind == "categorical") for c in schema.columns)
    return TableGenerator(columns, inputs, config.widths, key)


def codes_for(noise: Float[Array, "n k"], labels: Float[Array, "n c"]) -> Float[Array, "n i"]:
    """The input of a generator: the noise and the class, one-hot."""
    return jnp.concatenate([noise, labels], axis=1)


def to_arrays(net: Generator, frozen: Statistics) -> dict[str, NDArray[np.float32]]:
    """All numbers of a trained generator, by name."""
    leaves, _ = jax.tree_util.tree_flatten_with_path((eqx.filter(net, eqx.is_array), frozen))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(
    arrays: dict[str, NDArray[np.float32]], schema: Schema, config: GeneratorConfig
) -> tuple[Generator, Statistics]:
    """The inverse of `to_arrays`; allocates nothing of a size that the arrays do not have."""
    net = eqx.filter_eval_shape(net_for, schema, config, jax.random.key(0))
    codes = jax.ShapeDtypeStruct((2, config.latent_dim + len(schema.classes)), jnp.float32)
    wanted = net, eqx.filter_eval_shape(lambda net, codes: net(codes)[1], net, codes)
    paths, structure = jax.tree_util.tree_flatten_with_path(wanted)
    leaves = [jnp.asarray(arrays[jax.tree_util.keystr(path)]) for path, _ in paths]
    if any(leaf.shape != old.shape for leaf, (_, old) in zip(leaves, paths, strict=True)):
        raise ValueError("the arrays do not fit such a generator")
    trained: tuple[Generator, Statistics] = jax.tree_util.tree_unflatten(structure, leaves)
    return trained
