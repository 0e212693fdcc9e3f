"""Oracles for one discriminator of all records: its weights in, a gradient over records out.

The baselines of G-PATE. Unlike a teacher this discriminator is public, so its gradient is what must
be noised (DP-GAN), or is not (GAN: **no privacy**, and the ledger says so). What it says of made-up
records needs no record, and is left to whoever asks.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.measure.records import revealed
from limbeck.measure.votes import COUNTS, noisy_class_counts
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.privacy import noise, sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

GRADIENT = "gradient"
# Taken up in pieces of this many: one compiled shape, bounded memory.
AT_A_TIME = 64


class _Records(Unique):
    """The rows, and sums of clipped gradients over some of them."""

    def __init__(
        self, private: Described, discriminator: Discriminator, progress: Progress
    ) -> None:
        pieces = list(revealed(private, "read", progress))
        self.x = np.concatenate([x for x, _ in pieces])
        self.labels = np.concatenate([labels for _, labels in pieces])
        self.classes = len(private.schema.classes)
        self._discriminator = discriminator

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def clipped_sum(self, weights: Weights, batch: NDArray[np.intp], clip: Clip) -> Floats:
        """Over the batch, a piece at a time; added up in float64."""
        total = np.zeros(ravel_pytree(weights)[0].size)
        for positions, mask in sampling.pieces(batch, AT_A_TIME):
            one_hot = np.eye(self.classes, dtype=np.float32)[self.labels[positions]]
            found = clipped_gradients(
                self._discriminator, clip, weights, self.x[positions], one_hot, mask
            )
            total += np.asarray(found, np.float64).sum(axis=0)
        return total


@functools.partial(jax.jit, static_argnums=(0, 1))
def clipped_gradients(
    discriminator: Discriminator,
    clip: Clip,
    weights: Weights,
    x: Float[Array, "n d"],
    one_hot: Float[Array, "n c"],
    mask: Bool[Array, " n"],
) -> Float[Array, "n p"]:
    """Of −log D(x) with respect to the weights, of each record by itself.

    **Guarantee.** Each row has norm at most `clip.record_norm`; padding is zero.
    """

    def loss(weights: Weights, x: Float[Array, " d"], y: Float[Array, " c"]) -> Float[Array, ""]:
        logits = discriminator.logits(weights, discriminator.preprocess(x[None]), y[None])
        return jax.nn.softplus(-logits[0])

    def gradient(x: Float[Array, " d"], y: Float[Array, " c"]) -> Float[Array, " p"]:
        return ravel_pytree(jax.grad(loss)(weights, x, y))[0]

    found = jax.vmap(gradient)(x, one_hot)
    factors = jnp.where(mask, clip.factors(jnp.linalg.norm(found, axis=1)), 0)
    return jnp.where(factors[:, None] > 0, factors[:, None] * found, 0)


class NoisyCritic(Unique):
    """`oracle(weights)`: the noisy sum of clipped gradients over a fresh Poisson batch.

    **Guarantee.** Each call is one Gaussian event, Poisson sampled with `sampling_probability`; a
    record contributes at most `clip.record_norm` in L2 norm.
    """

    def __init__(
        self,
        private: Described,
        discriminator: Discriminator,
        *,
        clip: Clip,
        sampling_probability: float,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._records = _Records(private, discriminator, progress)
        self._clip, self._sampling_probability = clip, sampling_probability
        self._ledger, self._entropy = ledger, entropy

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __call__(self, weights: Weights) -> Floats:
        """One draw of noise."""
        rows = len(self._records.labels)
        batch = sampling.poisson(self._entropy, rows, self._sampling_probability)
        bounded = self._clip.bounded(
            self._records.clipped_sum(weights, batch, self._clip), self._sampling_probability
        )
        return noise.gaussian(bounded, purpose=GRADIENT, ledger=self._ledger, entropy=self._entropy)

    def class_counts(self) -> Floats:
        """See `noisy_class_counts`."""
        records = self._records
        return noisy_class_counts(
            records.labels, records.classes, ledger=self._ledger, entropy=self._entropy
        )


class ExactCritic(Unique):
    """The same without clipping or noise: the mean gradient over so many records at random."""

    def __init__(
        self,
        private: Described,
        discriminator: Discriminator,
        *,
        batch: int,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._records = _Records(private, discriminator, progress)
        self._batch, self._ledger, self._entropy = batch, ledger, entropy

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __call__(self, weights: Weights) -> Floats:
        """Over a fresh batch."""
        self._ledger.charge_without_noise(GRADIENT)
        bits = np.frombuffer(self._entropy.bytes(8 * self._batch), np.uint64)
        batch = (bits % np.uint64(len(self._records.labels))).astype(np.intp)
        return self._records.clipped_sum(weights, batch, Clip(bound=np.inf)) / self._batch

    def class_counts(self) -> Floats:
        """Exactly."""
        self._ledger.charge_without_noise(COUNTS)
        return np.bincount(self._records.labels, minlength=self._records.classes).astype(float)
