"""Drawing records from a saved generator: post-processing, as many as one likes."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.features.quantiles import QuantileMap
from limbeck.generate import judge, labels, nets
from limbeck.generate.labels import Labeller
from limbeck.generate.nets import Net, Shape, Statistics
from limbeck.privacy.noise import Entropy, standard_normal

if TYPE_CHECKING:
    from limbeck.bundle import Saved

Classes = NDArray[np.int64]

AT_A_TIME = 1000
# How often a record is drawn again that is taken for another class; then it stays.
TRIES = 30


def draw(
    schema: Schema, generator: "Saved", n: int, entropy: Entropy
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Encoded records and the positions of their classes.

    Classes come in their shares, as near as whole numbers allow, in random order. Of a categorical
    column's shares one value is drawn. If the generator has a judge, records that it takes for
    another class are drawn again; if it has a labeller, a record's class is what that says.
    """
    try:
        shape = nets.shape_of(generator.config)
        net, frozen = nets.from_arrays(generator.arrays, schema, shape)
        shares = np.asarray(generator.config["shares"], np.float64)
        places = QuantileMap(**generator.config["places"])
        places.inverse(np.zeros((1, schema.width)))  # of such records
        judged = judge.from_arrays(generator.arrays, schema.width, len(schema.classes))
        labelled = labels.of(generator, schema)
        sound = bool((shares >= 0).all()) and 0 < float(shares.sum()) < math.inf
        if not sound or shares.shape != (len(schema.classes),):
            raise ValueError("the shares are not those of this schema")
    except (LookupError, ValueError, TypeError, OverflowError):
        raise UserError("the generator was written by another version of Limbeck") from None
    wanted = _wanted(shares, n, entropy)

    def make(classes: Classes) -> NDArray[np.float32]:
        one_hot = np.eye(len(schema.classes), dtype=np.float32)[classes]
        width = labels.WIDER if labelled else 1.0
        return _made(net, frozen, shape, one_hot, width, entropy)

    if labelled:
        return _sorted_out(make, labelled, wanted), wanted
    x, tries = make(wanted), 0
    while judged and tries < TRIES and len(wrong := np.flatnonzero(judged(x) != wanted)):
        x[wrong], tries = make(wanted[wrong]), tries + 1
    return places.inverse(_chosen(schema, x, entropy)), wanted


def _sorted_out(
    make: Callable[[Classes], NDArray[np.float32]], labeller: Labeller, wanted: Classes
) -> NDArray[np.float32]:
    """As many of each class as are wanted, by what the labeller says of them.

    Whichever class a record was made for, it stands where one of its own is missing. A class that
    the labeller hardly ever sees is given what was made for it.
    """
    x, missing = make(wanted), np.arange(len(wanted))
    made = x.copy()
    for _ in range(TRIES):
        found, left = labeller(made), []
        for label in np.unique(wanted[missing]):
            its, fitting = missing[wanted[missing] == label], np.flatnonzero(found == label)
            filled = min(len(its), len(fitting))
            x[its[:filled]] = made[fitting[:filled]]
            left.append(its[filled:])
        missing = np.sort(np.concatenate(left))
        if not len(missing):
            break
        made = make(np.resize(wanted[missing], max(len(missing), AT_A_TIME)))
        x[missing] = made[: len(missing)]
    return x


def _made(
    net: Net,
    frozen: Statistics,
    shape: Shape,
    one_hot: NDArray[np.float32],
    width: float,
    entropy: Entropy,
) -> NDArray[np.float32]:
    """One record for each row, of that class, from normal codes of this width."""
    found = []
    for start in range(0, len(one_hot), AT_A_TIME):
        piece = one_hot[start : start + AT_A_TIME]
        padded = np.zeros((AT_A_TIME, piece.shape[1]), np.float32)
        padded[: len(piece)] = piece
        noise = width * standard_normal(entropy, (AT_A_TIME, shape.code))
        codes = nets.codes_for(jnp.asarray(noise, jnp.float32), jnp.asarray(padded))
        found.append(np.asarray(_forward(net, codes, frozen))[: len(piece)])
    return np.concatenate(found)


@eqx.filter_jit
def _forward(net: Net, codes: Float[Array, "n i"], frozen: Statistics) -> Float[Array, "n d"]:
    return net(codes, frozen)[0]


def _wanted(shares: NDArray[np.float64], n: int, entropy: Entropy) -> Classes:
    """So many of each class as its share says; what rounding leaves goes to the largest rests."""
    wanted = shares / shares.sum() * n
    counts = np.floor(wanted).astype(np.int64)
    rest = np.argsort(counts - wanted, kind="stable")[: n - counts.sum()]
    counts[rest] += 1
    order = np.argsort(standard_normal(entropy, (n,)))
    return np.repeat(np.arange(len(shares)), counts)[order]


def _chosen(schema: Schema, x: NDArray[np.float32], entropy: Entropy) -> NDArray[np.float32]:
    """Rows with one value in each categorical column, drawn by its shares."""
    if schema.is_image:
        return x
    start = 0
    for column in schema.columns:
        if column.kind == "categorical":
            part = x[:, start : start + column.width]
            uniform = _uniform(entropy, len(x))[:, None]
            below = np.cumsum(part, axis=1) < uniform * part.sum(axis=1, keepdims=True)
            at = np.minimum(below.sum(axis=1), column.width - 1)
            x[:, start : start + column.width] = np.eye(column.width, dtype=np.float32)[at]
        elif column.kind == "boolean":
            x[:, start] = x[:, start] > _uniform(entropy, len(x))
        start += column.width
    return x


def _uniform(entropy: Entropy, n: int) -> NDArray[np.float64]:
    bits = np.frombuffer(entropy.bytes(8 * n), np.uint64)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
