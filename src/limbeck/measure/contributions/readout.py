"""Gradients with respect to a linear readout W of features, as outer products of integers.

For features φ_l, one-hot labels y_l and predictions z_l = Wᵀφ_l,

    softmax regression    φ_l (softmax(z_l) − y_l)ᵀ
    ridge regression      φ_l (z_l − (y_l − 1/c))ᵀ,      c classes

(Eq. 3 of DP-KIP-ScatterNet for the second). Rows hold the integer features of `outer.codes`.
"""

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.measure.contributions import outer
from limbeck.measure.rows import Block
from limbeck.privacy.clipping import Clip

Floats = NDArray[np.float64]

GRADIENT = "gradient"


class Readout(NamedTuple):
    """The public half: the readout W [f, c], and a weight in [0, 1] for each class."""

    weights: Floats
    class_weights: Floats


@dataclasses.dataclass(frozen=True)
class ReadoutGradient:
    """The sum of clipped gradients, [f, c].

    **Guarantee.** A record contributes integers of Frobenius norm at most `outer.BOUND`, whatever
    the readout is; weights of classes never make it longer.
    """

    loss: Literal["softmax", "ridge"]
    clip: Clip

    l2_bound, l1_bound = float(outer.BOUND), None
    exact, block = True, 1024

    @property
    def grid(self) -> float:
        """C/(FEATURE · RESIDUAL)."""
        return (1.0 if self.clip.bound is None else self.clip.bound) / outer.BOUND

    def __call__(self, public: Readout, block: Block) -> Floats:
        """The integer sum over a block."""
        classes = public.weights.shape[1]
        phi, y = block.values.astype(np.float64), np.eye(classes)[block.labels]
        z = outer.predictions(phi, public.weights)
        residuals = softmax(z) - y if self.loss == "softmax" else z - (y - 1 / classes)
        weights = np.clip(np.nan_to_num(public.class_weights), 0, 1)[block.labels]
        return outer.outer_sum(phi, residuals, np.where(block.mask, weights, 0), self.clip)


def softmax(z: Floats) -> Floats:
    """exp(z) / Σ exp(z) along each row."""
    found = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))
