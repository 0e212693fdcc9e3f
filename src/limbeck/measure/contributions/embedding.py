"""One sum of features for each class: all that a moment-matching generator learns from.

    S_c = Σ_{l: y_l = c} φ(x_l) / ‖φ(x_l)‖          (Eq. 4 of DP-NTK, without the division by m)

A record is in one class and adds a vector of norm one there, so the matrix S moves by at most one
when a record comes or goes, and by at most two when one is replaced (Proposition 3.1, times m). The
papers divide by the number of records, which is private; here it is measured, with noise.

Where φ can be laid out, or is an outer product, contributions are integers. Where only its sum over
records can be computed, they are of closed form.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.batching import padded
from limbeck.features.base import FeatureMap
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.quantiles import QuantileMap
from limbeck.measure.contributions.closed_form import UNITS, ClosedForm
from limbeck.measure.rows import Block
from limbeck.privacy.bounded import Contribution
from limbeck.privacy.clipping import Clip

Floats = NDArray[np.float64]

EMBEDDING = "class-wise sums of features"
NORMALISE = Clip(bound=None)
# The scales of what goes into a layer, and of what comes back; their product is UNITS.
INPUT, DELTA = 2.0**11, 2.0**19
# The grid is a little finer than contributions are long, so that rounding cannot exceed it.
SLACK = 1 - 2.0**-30


def embedding_sum(phi: FeatureMap, classes: int) -> Contribution[QuantileMap, Block]:
    """The contribution for this feature map; its public argument is the map of quantiles."""
    if isinstance(phi, DenseNTK) and len(phi.widths) == 1:
        return OneLayerSum(phi, classes)
    if type(phi).total is FeatureMap.total:
        return FeatureSum(phi, classes)
    return ClosedFormSum(NORMALISE, phi, classes)


@dataclasses.dataclass(frozen=True)
class _Integers:
    """Sums of integers: a record has the norm `UNITS` at most."""

    grid, l2_bound, l1_bound, exact = 1 / UNITS, UNITS, None, True


@dataclasses.dataclass(frozen=True)
class FeatureSum(_Integers):
    """Class-wise sums of features that are laid out, [classes, f].

    **Guarantee.** A record contributes integers of norm at most `UNITS` in the row of its class.
    """

    phi: FeatureMap
    classes: int

    block = 512

    def __call__(self, public: QuantileMap, block: Block) -> Floats:
        """The integer sums over a block."""
        x, sound = sound_records(public, block)
        with jax.enable_x64(True):
            features = np.asarray(_features(self.phi, jnp.asarray(x)), np.float64)
        rows = integers(features, np.where(sound, 1.0, 0.0), NORMALISE)
        return np.eye(self.classes)[block.labels].T @ rows


@dataclasses.dataclass(frozen=True)
class OneLayerSum(_Integers):
    """Class-wise sums of the gradients of a network of one hidden layer, [classes, f].

    The gradient of a record is w [x̃ δᵀ, √c r̃] for x̃ = (x, 1), δ = a ∘ 1[h > 0], r̃ = (relu(h), 1)
    and w that makes its norm one (`features/dense_ntk.py`): an outer product, and a vector.

    **Guarantee.** A record contributes integers of norm at most `UNITS` in the row of its class, by
    a comparison of integers.
    """

    phi: DenseNTK
    classes: int

    block = 4096

    def __call__(self, public: QuantileMap, block: Block) -> Floats:
        """The integer sums over a block."""
        values, sound = sound_records(public, block)
        one = np.full((len(values), 1), INPUT)
        x = np.concatenate([np.trunc(values * INPUT), one], axis=1)
        (weights, bias), (out, _) = (tuple(map(_wide, layer)) for layer in self.phi.layers)
        # Integer weights, small enough that products are exact: |x| ≤ INPUT in each coordinate.
        scale = 2.0**51 / (INPUT * max(np.abs(weights).sum(axis=0).max() + np.abs(bias).max(), 1))
        h = x @ np.trunc(np.concatenate([weights, bias[None]]) * scale) / (scale * INPUT)
        delta, r = np.where(h > 0, out.sum(axis=1), 0), np.maximum(h, 0)
        r = math.sqrt(self.phi.logits) * np.concatenate([r, np.ones((len(r), 1))], axis=1)
        squares = np.sum(delta**2, axis=1) * np.sum((x / INPUT) ** 2, axis=1)
        w = (SLACK / np.sqrt(squares + np.sum(r**2, axis=1)))[:, None]
        delta, r = np.trunc(w * delta * DELTA), np.trunc(w * r * UNITS)
        fits = sound & _one_layer_fits(x, delta, r)
        return np.stack(
            [self._of_class(x, delta, r, fits & (block.labels == c)) for c in range(self.classes)]
        )

    @staticmethod
    def _of_class(x: Floats, delta: Floats, r: Floats, chosen: NDArray[np.bool_]) -> Floats:
        """In the order of the parameters: weights, biases, and those of the last layer."""
        return np.concatenate([(x[chosen].T @ delta[chosen]).ravel(), r[chosen].sum(axis=0)])


def _one_layer_fits(x: Floats, delta: Floats, r: Floats) -> NDArray[np.bool_]:
    """Whether ‖x‖²‖δ‖² + ‖r‖² ≤ UNITS², for integers, in integers."""
    squares = [np.sum(part**2, axis=1) for part in (x, delta, r)]
    small = squares[0] * squares[1] + squares[2] < 2.0**62  # false for what is no number
    a, b, c = (np.where(small, part, 0).astype(np.int64) for part in squares)
    return small & (a * b + c <= int(UNITS) ** 2)


@dataclasses.dataclass(frozen=True)
class ClosedFormSum(ClosedForm):
    """Class-wise sums of features of which only sums are computed, [classes, f], in float64.

    **Guarantee.** A record contributes a vector of norm at most `clip.record_norm` in the row of
    its class, rounding included.
    """

    phi: FeatureMap
    classes: int

    block, AT_A_TIME = 4096, 512

    def __call__(self, public: QuantileMap, block: Block) -> Floats:
        """The sums over a block, in units of the grid."""
        x, sound = sound_records(public, block)
        with jax.enable_x64(True):
            of_class = [self._sum(x[sound & (block.labels == c)]) for c in range(self.classes)]
        return np.stack(of_class) / self.grid

    def _sum(self, x: Floats) -> Floats:
        """Σ φ / ‖φ‖, in calls of one shape."""
        total = np.zeros(self.phi.size)
        for start in range(0, len(x), self.AT_A_TIME):
            some = x[start : start + self.AT_A_TIME]
            mask = jnp.arange(self.AT_A_TIME) < len(some)
            records = jnp.asarray(padded(some, self.AT_A_TIME))
            total += np.asarray(_total(self.phi, self.clip, records, mask))
        return total


def sound_records(quantiles: QuantileMap, block: Block) -> tuple[Floats, NDArray[np.bool_]]:
    """Records in [0, 1] after the map of quantiles, and which of them count.

    Padding does not count, nor do records that are not finite. What lies beyond [0, 1], where no
    encoded record is, is moved to its end, because norms in closed form lose precision far outside.
    """
    sound = block.mask & np.isfinite(block.values).all(axis=1)
    values = np.where(sound[:, None], block.values, 0)
    return np.clip(quantiles.forward(values), 0, 1), sound


def integers(rows: Floats, weights: Floats, clip: Clip) -> Floats:
    """Each row clipped, times its weight of at most one, as integers of norm at most `UNITS`.

    The unit is 1/`UNITS` of the bound. A row that would be longer, or is not finite, is zero; the
    comparison is of integers.
    """
    factors = weights * clip.factors_of(np.linalg.norm(rows, axis=1))
    bound = 1.0 if clip.bound is None else clip.bound
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.trunc(rows * (factors * (SLACK * UNITS / bound))[:, None])
        small = np.sum(scaled**2, axis=1) < 2.0**61  # false for what is no number
    kept = np.where(small[:, None], scaled, 0)
    whole = kept.astype(np.int64)
    fits = np.einsum("ij,ij->i", whole, whole) <= int(UNITS) ** 2
    return np.where(fits[:, None], kept, 0)


def _wide(array: Any) -> Floats:
    return np.asarray(array, np.float64)


@functools.partial(jax.jit, static_argnames=("phi",))
def _features(phi: FeatureMap, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
    return phi(x)


@functools.partial(jax.jit, static_argnames=("phi", "clip"))
def _total(
    phi: FeatureMap, clip: Clip, x: Float[Array, "n d"], mask: Bool[Array, " n"]
) -> Float[Array, " f"]:
    return phi.total(x, lambda norms: jnp.where(mask, clip.factors(norms), 0))
