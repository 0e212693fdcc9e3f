"""Gradients of a discriminator's loss, record by record."""

import dataclasses
import functools
import math

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.measure.contributions.closed_form import UNITS
from limbeck.measure.contributions.embedding import integers
from limbeck.measure.rows import Block
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.privacy.clipping import Clip

GRADIENT = "gradient"


@dataclasses.dataclass(frozen=True)
class CriticGradient:
    """The sum of clipped gradients of −log D(x) with respect to the weights, [p].

    **Guarantee.** A record contributes integers of norm at most `UNITS`, by a comparison of
    integers; one whose gradient is not finite contributes nothing.
    """

    discriminator: Discriminator
    clip: Clip

    l2_bound, l1_bound, block = UNITS, None, 64

    @property
    def exact(self) -> bool:
        """Whether there is a bound; a GAN without privacy has none."""
        return self.clip.bound is None or math.isfinite(self.clip.bound)

    @property
    def grid(self) -> float:
        """C/UNITS."""
        return (self.clip.bound or 1.0) / UNITS if self.exact else 1.0

    def __call__(self, public: Weights, block: Block) -> NDArray[np.float64]:
        """The integer sum over a block."""
        classes = public[-1][1].shape[0]
        one_hot = np.eye(classes, dtype=np.float32)[block.labels]
        gradients = gradients_of(self.discriminator, public, block.values, one_hot)
        rows = np.asarray(gradients, np.float64)
        if not self.exact:
            return rows[block.mask].sum(axis=0)
        return integers(rows, block.mask.astype(np.float64), self.clip).sum(axis=0)


@functools.partial(jax.jit, static_argnums=(0,))
def gradients_of(
    discriminator: Discriminator,
    weights: Weights,
    x: Float[Array, "n d"],
    one_hot: Float[Array, "n c"],
) -> Float[Array, "n p"]:
    """The gradient of −log D(x) of each record."""

    def loss(weights: Weights, x: Float[Array, " d"], y: Float[Array, " c"]) -> Float[Array, ""]:
        logits = discriminator.logits(weights, discriminator.preprocess(x[None]), y[None])
        return jax.nn.softplus(-logits[0])

    def gradient(x: Float[Array, " d"], y: Float[Array, " c"]) -> Float[Array, " p"]:
        return ravel_pytree(jax.grad(loss)(weights, x, y))[0]

    return jax.vmap(gradient)(x, one_hot)
