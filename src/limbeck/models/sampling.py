"""Drawing records from a saved generator: post-processing, in any number."""

import math
from collections.abc import Callable
from typing import Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.features.quantiles import QuantileMap
from limbeck.models import class_filter, generators, labeller
from limbeck.models.class_filter import ClassFilter
from limbeck.models.generators import Generator, GeneratorConfig, Statistics
from limbeck.models.labeller import Labeller
from limbeck.models.state import GeneratorState

Classes = NDArray[np.int64]
Records = NDArray[np.float32]
Make = Callable[[Classes], Records]

AT_A_TIME = 1000
# How often a misclassified record is drawn again before it is kept as it is.
TRIES = 30


class RandomBytes(Protocol):
    """A source of random bytes, from the operating system or from a seed."""

    def bytes(self, length: int) -> bytes:
        """The next `length` bytes."""
        ...


def draw(
    schema: Schema, generator: GeneratorState, n: int, entropy: RandomBytes
) -> tuple[Records, Classes]:
    """Encoded records and the positions of their classes.

    Classes occur in their shares, as nearly as whole numbers allow, in random order. One value of a
    categorical column is drawn by the shares that the generator gives. If the generator has a class
    filter, misclassified records are drawn again; if it has a labeller, that names the classes.
    """
    try:
        config = GeneratorConfig.from_json(generator.config)
        net, frozen = generators.from_arrays(generator.arrays, schema, config)
        shares = np.asarray(generator.config["shares"], np.float64)
        places = QuantileMap(**generator.config["places"])
        places.inverse(np.zeros((1, schema.width)))  # raises if they are of other columns
        kept_by = class_filter.from_arrays(generator.arrays, schema.width, len(schema.classes))
        labelled_by = labeller.of(generator, schema)
        sound = bool((shares >= 0).all()) and 0 < float(shares.sum()) < math.inf
        if not sound or shares.shape != (len(schema.classes),):
            raise ValueError("the shares do not fit this schema")
    except (LookupError, ValueError, TypeError, OverflowError):
        raise UserError("the generator was written by another version of Limbeck") from None
    rng = np.random.default_rng(int.from_bytes(entropy.bytes(32), "little"))
    wanted = _wanted(shares, n, rng)

    def make(classes: Classes) -> Records:
        one_hot = np.eye(len(schema.classes), dtype=np.float32)[classes]
        width = labeller.WIDER if labelled_by else 1.0
        return _generate(net, frozen, width * _normal(rng, len(classes), config), one_hot)

    if labelled_by:
        return _draw_labelled(make, labelled_by, wanted), wanted
    x = make(wanted) if kept_by is None else reject_misclassified(make, kept_by, wanted)
    return places.inverse(_choose(schema, x, rng)), wanted


def reject_misclassified(make: Make, kept_by: ClassFilter, wanted: Classes) -> Records:
    """Draw records again, up to `TRIES` times, that the filter assigns to another class."""
    x = make(wanted)
    for _ in range(TRIES):
        wrong = np.flatnonzero(kept_by(x) != wanted)
        if not len(wrong):
            break
        x[wrong] = make(wanted[wrong])
    return x


def _draw_labelled(make: Make, labelled_by: Labeller, wanted: Classes) -> Records:
    """As many records of each class as are wanted, by the classes that the labeller names.

    A record fills a gap of the class that the labeller names, whichever class it was generated
    for. Gaps of a class that the labeller hardly ever names keep what was generated for it.
    """
    x, missing = make(wanted), np.arange(len(wanted))
    drawn = x.copy()
    for _ in range(TRIES):
        named, left = labelled_by(drawn), []
        for label in np.unique(wanted[missing]):
            gaps, fitting = missing[wanted[missing] == label], np.flatnonzero(named == label)
            filled = min(len(gaps), len(fitting))
            x[gaps[:filled]] = drawn[fitting[:filled]]
            left.append(gaps[filled:])
        missing = np.sort(np.concatenate(left))
        if not len(missing):
            break
        drawn = make(np.resize(wanted[missing], max(len(missing), AT_A_TIME)))
        x[missing] = drawn[: len(missing)]
    return x


def _normal(rng: np.random.Generator, n: int, config: GeneratorConfig) -> Records:
    return rng.standard_normal((n, config.latent_dim), np.float32)


def _generate(net: Generator, frozen: Statistics, latents: Records, one_hot: Records) -> Records:
    """One record for each latent and class, in pieces of one shape."""
    padding = ((0, -len(latents) % AT_A_TIME), (0, 0))
    latents, labels = np.pad(latents, padding), np.pad(one_hot, padding)
    pieces = [
        _forward(net, jnp.asarray(latents[piece]), jnp.asarray(labels[piece]), frozen)
        for start in range(0, len(latents), AT_A_TIME)
        for piece in [slice(start, start + AT_A_TIME)]
    ]
    return np.concatenate(pieces)[: len(one_hot)]


@eqx.filter_jit
def _forward(
    net: Generator, noise: Float[Array, "n k"], labels: Float[Array, "n c"], frozen: Statistics
) -> Float[Array, "n d"]:
    return net(generators.codes_for(noise, labels), frozen)[0]


def _wanted(shares: NDArray[np.float64], n: int, rng: np.random.Generator) -> Classes:
    """The classes by their shares, shuffled; rounding favours the largest remainders."""
    exact = shares / shares.sum() * n
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: n - counts.sum()]
    counts[rest] += 1
    return rng.permutation(np.repeat(np.arange(len(shares)), counts))


def _choose(schema: Schema, x: Records, rng: np.random.Generator) -> Records:
    """Rows with one value in each categorical column, drawn by its shares."""
    if schema.is_image:
        return x
    start = 0
    for column in schema.columns:
        if column.kind == "categorical":
            part = x[:, start : start + column.width]
            uniform = rng.random((len(x), 1))
            below = np.cumsum(part, axis=1) < uniform * part.sum(axis=1, keepdims=True)
            at = np.minimum(below.sum(axis=1), column.width - 1)
            x[:, start : start + column.width] = np.eye(column.width, dtype=np.float32)[at]
        elif column.kind == "boolean":
            x[:, start] = x[:, start] > rng.random(len(x))
        start += column.width
    return x
