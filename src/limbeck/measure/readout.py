"""Noisy gradients of a softmax readout of features, over all records at once.

For features φ_l of unit norm, labels y_l and a readout W (F × c), with p_l = softmax(Wᵀφ_l), the
cross-entropy of a record has the gradient

    φ_l (p_l − y_l)ᵀ,        of norm ‖φ_l‖ ‖p_l − y_l‖,

so that clipping is exact and needs no more than the residual. Every record is in every step: the
whole is a composition of plain Gaussian draws, and no sampling has to be trusted.
"""

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.features.base import FeatureMap, features_of
from limbeck.features.inputs import Inputs
from limbeck.measure.feature_gradients import Records, factors, over_blocks, wide
from limbeck.measure.records import finite, revealed
from limbeck.privacy import clipping, noise, sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

GRADIENT = "gradient"
COUNTS = "class counts"
HISTOGRAMS = "column histograms"
BINS = 256


class NoisyReadout(Unique):
    """What a private readout is made of: counts, histograms of columns, and gradients.

    Every method but `look` is one draw of noise, charged to the ledger. The rows are read when the
    object is made. `look` exchanges them for their features, which stay in memory in float32.
    """

    # Taken up in pieces of this many: one compiled shape, bounded memory.
    at_a_time = 1024

    def __init__(
        self,
        private: Described,
        *,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._classes, self._public_rows = len(private.schema.classes), private.schema.public_rows
        self._ledger, self._entropy, self._progress = ledger, entropy, progress
        rows, labels = zip(*revealed(private, "read", progress), strict=True)
        self._rows, self._labels = list(rows), np.concatenate(labels)
        self._features: NDArray[np.float32] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def class_counts(self) -> Floats:
        """The noisy number of records in each class.

        **Guarantee.** One Gaussian event; a record counts for one, in one class.
        """
        return self._noised(clipping.histograms(self._labels[:, None], self._classes), COUNTS)[0]

    def histograms(self, columns: NDArray[np.intp]) -> Floats:
        """Noisy histograms, of `BINS` equal bins over [0, 1], of these encoded columns.

        **Guarantee.** One Gaussian event; a record counts for one in each column, so its
        contribution has the norm √columns, which is what the noise is scaled to.
        """
        self._before_look()
        positions = np.concatenate([np.floor(x[:, columns] * BINS) for x in self._rows])
        return self._noised(clipping.histograms(positions, BINS), HISTOGRAMS)

    def look(self, phi: FeatureMap, inputs: Inputs) -> None:
        """Compute the features and let go of the rows. Nothing leaves."""
        self._before_look()
        found, done = np.empty((len(self._labels), phi.size), np.float32), 0
        public = self._public_rows  # how many rows there are may be private
        while self._rows:
            self._progress("features", done if public else 0, public or 0)
            x = self._rows.pop(0)
            found[done : done + len(x)] = finite(features_of(phi, inputs.from_records(x)))
            done += len(x)
        self._features = found

    def gradient(self, readout: NDArray[np.floating], weights: Floats, clip: Clip) -> Floats:
        """Σ_l w(y_l) c_l φ_l (p_l − y_l)ᵀ plus noise, c_l being what clipping multiplies by.

        `weights` are one number in [0, 1] a class; public, or made of noisy counts.

        **Guarantee.** One Gaussian event without sampling; a record contributes a matrix of
        Frobenius norm at most `clip.record_norm`, because a weight never makes it longer.
        """
        if not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError("a weight above one would make contributions longer than their bound")
        if self._features is None:
            raise RuntimeError("`look` comes before `gradient`")
        features, total = self._features, np.zeros(readout.shape)

        def of_piece(piece: tuple[NDArray[np.intp], NDArray[np.bool_]]) -> Floats:
            positions, mask = piece
            taken = slice(positions[0], positions[0] + len(mask)) if mask.all() else positions
            with jax.enable_x64(True):
                y = jnp.asarray(np.eye(self._classes)[self._labels[taken]])
                records = Records(jnp.asarray(features[taken]), y, jnp.asarray(mask))
                return np.asarray(clipped_sum(clip, jnp.asarray(readout), weights, records))

        # Products this thin run on one core each. They are added up in the order of the records.
        pieces = sampling.pieces(np.arange(len(self._labels)), self.at_a_time)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for part in pool.map(of_piece, pieces):
                total += part
        return self._noised(clip.bounded(total), GRADIENT)

    def _before_look(self) -> None:
        if self._features is not None:
            raise RuntimeError("the rows were let go of by `look`, which comes once and last")

    def _noised(self, bounded: clipping.Bounded, purpose: str) -> Floats:
        return noise.gaussian(bounded, purpose=purpose, ledger=self._ledger, entropy=self._entropy)


@functools.partial(jax.jit, static_argnames=("clip",))
def clipped_sum(
    clip: Clip, readout: Float[Array, "f c"], weights: Float[Array, " c"], records: Records
) -> Float[Array, "f c"]:
    """The sum of `NoisyReadout.gradient` over one piece, in float64.

    **Guarantee.** Each record that is not padding contributes a matrix of Frobenius norm at most
    `clip.record_norm`, rounding included, for weights of at most one.
    """

    def of_block(block: Records) -> Float[Array, "f c"]:
        phi = wide(block)
        r = jax.nn.softmax(phi @ readout, axis=1) - block.y
        c = factors(clip, block, jnp.sum(r**2, axis=1) * jnp.sum(phi**2, axis=1), 0.0)
        # Zero times infinity is no number: what is left out is taken out, not multiplied away.
        phi, r = jnp.where(c > 0, phi, 0), jnp.where(c > 0, r, 0)
        return phi.T @ (c * (block.y @ weights)[:, None] * r)

    return over_blocks(of_block, records, readout.shape)
