"""Oracles for kernel-inducing points: a support set in, a noisy gradient out.

They hold the private rows for as long as a method runs; nothing of them can be read off an
oracle but what `__call__` returns.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from limbeck.data.private import PrivateData
from limbeck.data.schema import Described
from limbeck.features.base import InnerProductKernel
from limbeck.features.inputs import Inputs
from limbeck.measure import krr_gradients
from limbeck.privacy import clipping, noise, sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import Entropy

Floats = NDArray[np.float64]

GRADIENT = "gradient"
COUNT = "count"

# Records are taken up in pieces of this many: one compiled shape, bounded memory.
PIECE = 512


class Regression(NamedTuple):
    """The public half of the problem: what is regressed on what."""

    kernel: InnerProductKernel
    inputs: Inputs
    support_y: Floats
    regularisation: float


class _Rows(NamedTuple):
    x: Floats
    norms: Floats
    labels: NDArray[np.int32]


class _Oracle:
    """Private rows in the coordinates of the support, and the sum over a batch of them."""

    def __init__(self, private: Described, problem: Regression) -> None:
        self._rows = _read(private, problem)
        self._problem = problem

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def _sum(self, support_x: NDArray[np.float32], batch: NDArray[np.intp], clip: Clip) -> Floats:
        problem, rows = self._problem, self._rows
        total = np.zeros(support_x.shape)
        with jax.enable_x64(True):
            support, low_rank = self._prepared(support_x)
            for positions, mask in sampling.pieces(batch, PIECE):
                y = centred_one_hot(rows.labels[positions], problem.support_y.shape[1])
                taken = (rows.x[positions], rows.norms[positions], y, mask)
                records = krr_gradients.Records(*map(jnp.asarray, taken))
                found = krr_gradients.clipped_sum(problem.kernel, clip, support, low_rank, records)
                total += np.asarray(found)
        return total

    def _prepared(
        self, support_x: NDArray[np.float32]
    ) -> tuple[krr_gradients.Support, krr_gradients.LowRank | None]:
        kernel, _, support_y, regularisation = self._problem
        x = jnp.asarray(support_x, jnp.float64)
        return krr_gradients.prepare(kernel, x, jnp.asarray(support_y), regularisation)


class NoisyGradient(_Oracle):
    """`oracle(support_x)`: the noisy sum of clipped gradients over a fresh Poisson batch.

    Steps 3 to 7 of Algorithm 1 of DP-KIP-ScatterNet.

    **Guarantee.** Each call is one Gaussian event with the ledger's noise multiplier, Poisson
    sampled with `sampling_probability`; a record contributes at most `clip.record_norm` in L2
    norm. The ledger refuses a call beyond the planned number.
    """

    def __init__(
        self,
        private: Described,
        problem: Regression,
        *,
        clip: Clip,
        sampling_probability: float,
        ledger: Ledger,
        entropy: Entropy,
    ) -> None:
        super().__init__(private, problem)
        self._clip = clip
        self._sampling_probability = sampling_probability
        self._ledger = ledger
        self._entropy = entropy

    def __call__(self, support_x: NDArray[np.float32]) -> Floats:
        """One draw of noise."""
        batch = sampling.poisson(self._entropy, len(self._rows.labels), self._sampling_probability)
        bounded = self._clip.bounded(
            self._sum(support_x, batch, self._clip), self._sampling_probability
        )
        return noise.gaussian(bounded, purpose=GRADIENT, ledger=self._ledger, entropy=self._entropy)

    def count(self) -> float:
        """The noisy number of records.

        **Guarantee.** One Gaussian event; a record counts for one.
        """
        counted = clipping.count(len(self._rows.labels))
        return float(
            noise.gaussian(counted, purpose=COUNT, ledger=self._ledger, entropy=self._entropy)
        )


class ExactGradient(_Oracle):
    """The same without clipping or noise, for KIP: **no privacy**, and the ledger says so."""

    def __init__(
        self,
        private: Described,
        problem: Regression,
        *,
        sampling_probability: float,
        ledger: Ledger,
        entropy: Entropy,
    ) -> None:
        super().__init__(private, problem)
        self._sampling_probability = sampling_probability
        self._ledger = ledger
        self._entropy = entropy

    def __call__(self, support_x: NDArray[np.float32]) -> Floats:
        """The mean gradient over a Poisson batch."""
        self._ledger.charge_without_noise(GRADIENT)
        batch = sampling.poisson(self._entropy, len(self._rows.labels), self._sampling_probability)
        return self._sum(support_x, batch, Clip(bound=np.inf)) / max(len(batch), 1)

    def solved_labels(self, support_x: NDArray[np.float32]) -> Floats:
        """The labels that are best for these points on all records ("label solve" of KIP).

        Least squares over Y_s of Σ_l ‖y_l − k_lᵀ M⁻¹ Y_s‖²; needs Σ u uᵀ and Σ u yᵀ only.
        """
        self._ledger.charge_without_noise(GRADIENT)
        rows = self._rows
        m, classes = self._problem.support_y.shape
        uu, uy = np.zeros((m, m)), np.zeros((m, classes))
        with jax.enable_x64(True):
            support, _ = self._prepared(support_x)
            for start in range(0, len(rows.labels), PIECE):
                piece = slice(start, start + PIECE)
                dots = jnp.asarray(rows.x[piece]) @ support.x.T
                norms = jnp.asarray(rows.norms[piece])
                k = self._problem.kernel.from_gram(dots, norms, support.norms)
                u = np.asarray(k @ support.inverse)
                uu += u.T @ u
                uy += u.T @ centred_one_hot(rows.labels[piece], classes)
        ridge = 1e-6 * np.trace(uu) / m
        return np.linalg.solve(uu + ridge * np.eye(m), uy)


def centred_one_hot(labels: NDArray[np.integer], classes: int) -> Floats:
    """One-hot rows minus 1/classes, which regression treats as zero knowledge.

    Examples
    --------
    >>> centred_one_hot(np.array([1]), 2).tolist()
    [[-0.5, 0.5]]
    """
    return np.eye(classes)[labels] - 1 / classes


def _read(private: Described, problem: Regression) -> _Rows:
    if not isinstance(private, PrivateData):
        raise TypeError("records are read from PrivateData; open them with limbeck.open")
    pieces = []
    for x, labels in private.reveal():
        inputs = problem.inputs.from_records(x.astype(np.float64))
        norms = np.sum(inputs**2, axis=1)
        pieces.append(_Rows(inputs @ problem.inputs.basis, norms, labels))
    return _Rows(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
