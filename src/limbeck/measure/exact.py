"""The same gradients without clipping or noise, for KIP: **no privacy**, and the ledger says so."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.measure.gradients import GRADIENT
from limbeck.measure.records import KernelRecords, Regression, centred_one_hot, revealed
from limbeck.privacy import sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]


class ExactGradient(Unique):
    """For a kernel of inner products: `oracle(support_x)`, the mean gradient over a batch."""

    def __init__(
        self,
        private: Described,
        problem: Regression,
        *,
        sampling_probability: float,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._records = KernelRecords(private, problem, progress)
        self._sampling_probability = sampling_probability
        self._ledger = ledger
        self._entropy = entropy

    def __call__(self, support_x: NDArray[np.float32]) -> Floats:
        """Over a Poisson batch."""
        self._ledger.charge_without_noise(GRADIENT)
        rows = len(self._records.labels)
        batch = sampling.poisson(self._entropy, rows, self._sampling_probability)
        found = self._records.clipped_sum(support_x, batch, Clip(bound=np.inf))
        return np.asarray(found / max(len(batch), 1))

    def solved_labels(self, support_x: NDArray[np.float32]) -> Floats:
        """The labels that are best for these points on all records ("label solve" of KIP).

        Least squares over Y_s of Σ_l ‖y_l − k_lᵀ M⁻¹ Y_s‖²; needs Σ u uᵀ and Σ u yᵀ only.
        """
        self._ledger.charge_without_noise(GRADIENT)
        records, problem = self._records, self._records.problem
        assert isinstance(problem.kernel, InnerProductKernel)
        m, classes = problem.support_y.shape
        uu, uy = np.zeros((m, m)), np.zeros((m, classes))
        with jax.enable_x64(True):
            support, _ = records.prepare(support_x)
            for start in range(0, len(records.labels), records.at_a_time):
                piece = slice(start, start + records.at_a_time)
                dots = jnp.asarray(records.x[piece]) @ support.x.T
                norms = jnp.asarray(records.norms[piece])
                k = problem.kernel.from_gram(dots, norms, support.norms)
                u = np.asarray(k @ support.inverse)
                uu += u.T @ u
                uy += u.T @ records.y(piece)
        return _least_squares(uu, uy)


class ExactReadoutGradient(Unique):
    """For a feature map: `oracle(readout)`, the mean gradient over all records.

    The loss is ½ tr(Wᵀ A W) − tr(Wᵀ B) + const, so the records are needed for A = Σ φ φᵀ and
    B = Σ φ yᵀ only: a step does not depend on how many there are.
    """

    def __init__(
        self, private: Described, problem: Regression, ledger: Ledger, progress: Progress = silent
    ) -> None:
        phi, classes = problem.kernel, problem.support_y.shape[1]
        assert isinstance(phi, FeatureMap)
        self._ledger, self._rows = ledger, 0
        self._a = np.zeros((phi.size, phi.size), np.float32)
        self._b = np.zeros((phi.size, classes), np.float32)
        for x, labels in revealed(private, "features", progress):
            features = features_of(phi, problem.inputs.from_records(x))
            self._a += features.T @ features
            self._b += features.T @ centred_one_hot(labels, classes).astype(np.float32)
            self._rows += len(labels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __call__(self, readout: NDArray[np.floating]) -> NDArray[np.float32]:
        """(A W − B) / n."""
        self._ledger.charge_without_noise(GRADIENT)
        found = self._a @ readout.astype(np.float32) - self._b
        return found / np.float32(max(self._rows, 1))

    def solved_labels(self, readouts: NDArray[np.floating]) -> Floats:
        """The labels that are best for the `readouts` Φᵀ M⁻¹ of single labels."""
        self._ledger.charge_without_noise(GRADIENT)
        readouts = readouts.astype(np.float64)
        return _least_squares(readouts.T @ self._a @ readouts, readouts.T @ self._b)


def _least_squares(uu: Floats, uy: Floats) -> Floats:
    ridge = 1e-6 * np.trace(uu) / len(uu)
    return np.linalg.solve(uu + ridge * np.eye(len(uu)), uy)
