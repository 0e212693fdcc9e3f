"""Kernel inducing points (KIP), without privacy: the baseline.

The support set minimises the kernel ridge loss of the records (Eq. 3),

    Σ_i ‖y_i − k(x_i, X_s) (K_ss + λ tr(K_ss)/m · I)⁻¹ y_s‖²,

by gradient descent from noise. On finite features the loss needs the records through A = Σ φ φᵀ and
B = Σ φ yᵀ only, so that a step does not depend on how many there are.

References
----------
Nguyen, Chen & Lee 2021, "Dataset Meta-Learning from Kernel Ridge-Regression".
"""

import math
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.distill.support import (
    Descent,
    Regression,
    bundled,
    descend,
    noise_start,
    regression_for,
    sampling_probability,
    through_readout,
)
from limbeck.features import canvas, kernels
from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.measure.contributions import ridge_points
from limbeck.measure.contributions.counts import CLASS_COUNTS, ClassCounts
from limbeck.measure.contributions.moments import MOMENTS, FeatureMoments
from limbeck.measure.contributions.readout import GRADIENT
from limbeck.measure.rows import Rows, read
from limbeck.method import Method, setting
from limbeck.privacy.budget import Budget
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Entry
from limbeck.privacy.plan import Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Distilled

Floats = NDArray[np.float64]


class KIP(Method):
    """Distil without privacy. A baseline: its result must not be published."""

    per_class: int = setting(default=10, meaning="Number of points for each class.")
    features: str = setting(default="fc-ntk", meaning="Kernel or feature map.")
    steps: int = setting(default=500, meaning="Number of gradient steps.")
    sampling_rate: float = setting(
        default=1 / 12,
        meaning="Chance of each record to be in a batch; features take all records.",
        most=1,
    )
    batch: int | None = setting(
        default=None, meaning="Expected batch size, where the row count is public."
    )
    learning_rate: float = setting(default=0.05, meaning="Rate of the optimiser.")
    optimiser: Literal["adam", "sgd"] = setting(default="adam", meaning="Optimiser of the points.")
    schedule: Literal["cosine", "constant"] = setting(
        default="cosine", meaning="Schedule of the rate."
    )
    regularisation: float = setting(
        default=1e-5, meaning="λ, relative to the mean of the kernel's diagonal."
    )
    start_scale: float = setting(
        default=0.3, meaning="Standard deviation of the noise that points start from."
    )
    label_solve: bool = setting(default=False, meaning="Solve for the labels of the final points.")

    name: ClassVar = "kip"
    command: ClassVar = "distill"
    summary: ClassVar = "kernel inducing points, the baseline without privacy"
    guarantee: ClassVar = "none"
    paper: ClassVar = (
        "Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021"
    )
    docs: ClassVar = "docs/dp_kip.md"
    private: ClassVar = False

    def check(self) -> None:
        """Refuse unknown features."""
        kernels.find(self.features)

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """Sums without noise."""
        rate = sampling_probability(schema, self.batch, self.sampling_rate)
        gradients = Entry(
            purpose=GRADIENT, draws=self.steps, noise_multiplier=None, sampling_probability=rate
        )
        once = [
            Entry(purpose=purpose, draws=1, noise_multiplier=None)
            for purpose in (MOMENTS, CLASS_COUNTS)
        ]
        return Plan(settled=(gradients, *once))

    def run(self, private: HasSchema, run: Run) -> Distilled:
        """Points that follow exact gradients."""
        regression = regression_for(self, private.schema)
        start = noise_start(run.entropy, regression, self.start_scale)
        on_features = isinstance(regression.kernel, FeatureMap)
        fit = self._on_features if on_features else self._on_kernel
        regression, support_x = fit(regression, start, read(private, run), run)
        return bundled(self, self.features, private.schema, regression, support_x, run)

    def _descent(self) -> Descent:
        return Descent(
            steps=self.steps,
            learning_rate=self.learning_rate,
            optimiser=self.optimiser,
            schedule=self.schedule,
        )

    def _on_features(
        self, regression: Regression, start: NDArray[np.float32], rows: Rows, run: Run
    ) -> tuple[Regression, NDArray[np.float32]]:
        phi, inputs = regression.kernel, regression.inputs
        assert isinstance(phi, FeatureMap)
        features = rows.derived(
            lambda x: features_of(phi, inputs.from_records(x)), (phi.size,), np.float32
        )
        moments = _moments(run, features, regression)

        def gradient(readout: NDArray[np.floating]) -> Floats:
            return (moments.a @ readout - moments.b) / moments.records

        through = through_readout(regression, gradient)
        support_x = descend(self._descent(), start, through, run.progress)
        if self.label_solve:
            solution = regression.solution(canvas.features(phi, regression.canvas, support_x))
            singles = np.asarray(solution.features.T) @ np.asarray(solution.inverse)
            uu, uy = singles.T @ moments.a @ singles, singles.T @ moments.b
            regression = regression._replace(support_y=_least_squares(uu, uy))
        return regression, support_x

    def _on_kernel(
        self, regression: Regression, start: NDArray[np.float32], rows: Rows, run: Run
    ) -> tuple[Regression, NDArray[np.float32]]:
        kernel, inputs = regression.kernel, regression.inputs
        assert isinstance(kernel, InnerProductKernel)
        size = inputs.basis.shape[1] + 1
        records = rows.derived(lambda x: ridge_points.coordinates(inputs, x), (size,), np.float64)
        contribution = ridge_points.PointGradient(Clip(bound=math.inf), kernel)
        classes = ClassCounts(regression.support_y.shape[1])
        count = max(run.sum(records, classes, purpose=CLASS_COUNTS).sum(), 1)
        batch = count * run.ledger.planned(GRADIENT).sampling_probability

        def gradient(support_x: NDArray[np.float32]) -> Floats:
            support = ridge_points.prepare(kernel, support_x, *regression[3:])
            return run.sum(records, contribution, support, purpose=GRADIENT) / batch

        support_x = descend(self._descent(), start, gradient, run.progress)
        if self.label_solve:
            support, _ = ridge_points.prepare(kernel, support_x, *regression[3:])

            def solved(values: Floats) -> Floats:
                with jax.enable_x64(True):
                    x, norms = jnp.asarray(values[:, :-1]), jnp.asarray(values[:, -1])
                    k = kernel.from_gram(x @ support.x.T, norms, support.norms)
                    return np.asarray(k @ support.inverse)

            m = len(regression.support_y)
            moments = _moments(run, records.derived(solved, (m,), np.float64), regression)
            labels = _least_squares(moments.a, moments.b)
            regression = regression._replace(support_y=labels)
        return regression, support_x


class _Moments(NamedTuple):
    """Σ φ φᵀ, Σ φ yᵀ and the number of records."""

    a: Floats
    b: Floats
    records: float


def _moments(run: Run, features: Rows, regression: Regression) -> _Moments:
    contribution = FeatureMoments(regression.support_y.shape[1])
    total = run.sum(features, contribution, purpose=MOMENTS)
    size = len(total)
    return _Moments(total[:, :size], total[:, size:-1], max(float(total[0, -1]), 1.0))


def _least_squares(uu: Floats, uy: Floats) -> Floats:
    """The labels Y_s that are best on all records, min Σ ‖y − uᵀ Y_s‖² ("label solve")."""
    ridge = 1e-6 * np.trace(uu) / len(uu)
    return np.linalg.solve(uu + ridge * np.eye(len(uu)), uy)
