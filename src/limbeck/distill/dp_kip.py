"""DP-KIP: kernel inducing points by noisy gradients of clipped, Poisson-sampled records.

Algorithm 1 of "Differentially Private Kernel Inducing Points using features from ScatterNets"
(Vinaroz & Park 2024), Algorithm 3 of its first version. The steps below carry its numbers.

**Guarantee.** The support set is a function of T = `steps` noisy sums and of noise. Each sum is a
Gaussian event, Poisson sampled with the sampling rate, in which a record has norm at most C; their
composition is (ε, δ)-DP for the budget's adjacency. `clip_in` says what is summed. In all ways the
norm of a record's part is exact, over all entries together, and noise is added to every entry
before anything else is done with the sum:

    points (fc-ntk)   gradients with respect to the support points, as in the paper; m × p entries
    readout           with respect to the readout W = Φᵀα of the support features Φ; F × c entries
    features          with respect to Φ; m × F entries
    pixels            with respect to the support points, through the features; m × p entries

From the readout to the features, and from the features to the points, the noisy sum is mapped
by the chain rule, which sees the support set and the sum, and no record: post-processing.
Contributions to the readout are integers; the others exist in closed form only.

Labels are fixed and balanced over the declared classes. Nothing else is read from the records,
except, for SGD where the row count is private, one noisy count. Which pixels are corrupted, and
with what, is noise that knows no record.

Where it differs from the paper, for accuracy at the same budget: larger and truly random batches,
a decaying rate, records normalised one by one; on the FC-NTK support points in low frequencies, on
features gradients of the readout.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from limbeck.data.schema import HasSchema, Schema
from limbeck.distill.support import (
    Descent,
    Gradient,
    Regression,
    bundled,
    descend,
    noise_start,
    regression_for,
    sampling_probability,
    through_features,
    through_readout,
)
from limbeck.errors import UserError
from limbeck.features import canvas, kernels
from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.measure.contributions import outer, ridge_points
from limbeck.measure.contributions.counts import CLASS_COUNTS, ClassCounts
from limbeck.measure.contributions.readout import GRADIENT, Readout, ReadoutGradient
from limbeck.measure.contributions.ridge_features import FeatureGradient, PixelGradient, finite
from limbeck.measure.rows import Rows, read
from limbeck.method import Method, setting
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import Clip
from limbeck.privacy.noise import Entropy, standard_normal
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Distilled

Floats = NDArray[np.float64]


class DPKIP(Method):
    """Distil under differential privacy.

    Examples
    --------
    >>> DPKIP(per_class=1, epochs=10, sampling_rate=0.1).per_class
    1
    """

    per_class: int = setting(default=10, meaning="Number of points for each class.")
    features: str = setting(default="fc-ntk", meaning="Kernel or feature map.")
    epochs: float | Literal["auto"] = setting(
        default="auto",
        meaning=(
            "How often each record is drawn on average; auto is 40 on fc-ntk and 20 on features."
        ),
    )
    sampling_rate: float = setting(
        default=1 / 12, meaning="Chance of each record to be in a batch.", most=1
    )
    batch: int | None = setting(
        default=None, meaning="Expected batch size, where the row count is public."
    )
    clip: float | Literal["auto", "normalise"] = setting(
        default="auto",
        meaning=(
            "Norm C to which gradients are clipped; normalise scales each to norm one; auto "
            "is 11/√D on fc-ntk, 1 for the readout of features, and normalises elsewhere."
        ),
    )
    clip_in: Literal["readout", "features", "pixels"] = setting(
        default="readout",
        meaning="For features, what gradients are clipped and noised with respect to.",
    )
    coordinates: Literal["auto", "low-frequency", "all"] = setting(
        default="auto",
        meaning=(
            "Coordinates in which points of images are learned; auto takes low frequencies "
            "where the coordinates themselves are noised."
        ),
    )
    learning_rate: float = setting(default=0.1, meaning="Rate of the optimiser.")
    optimiser: Literal["adam", "sgd"] = setting(default="adam", meaning="Optimiser of the points.")
    schedule: Literal["cosine", "constant"] = setting(
        default="cosine", meaning="Schedule of the rate."
    )
    regularisation: float = setting(
        default=1e-4, meaning="λ, relative to the mean of the kernel's diagonal."
    )
    start_scale: float = setting(
        default=0.3, meaning="Standard deviation of the noise that points start from."
    )
    count_share: float = setting(
        default=0.01, meaning="Share of the noise budget for the number of records."
    )
    corrupt: float = setting(
        default=0.0,
        meaning="Share of pixels that stay at the noise they start from (Table 4).",
        least=0,
        below=1,
    )

    name: ClassVar = "dp-kip"
    command: ClassVar = "distill"
    summary: ClassVar = "kernel inducing points by noisy gradients of clipped records"
    guarantee: ClassVar = "(ε, δ)-DP by Poisson-sampled Gaussian draws"
    paper: ClassVar = "Vinaroz & Park, Differentially Private Kernel Inducing Points, TMLR 2024"
    docs: ClassVar = "docs/dp_kip.md"

    def check(self) -> None:
        """Refuse unknown features, and corrupted pixels where there are none."""
        kernels.find(self.features)
        if self.corrupt and self.features == "fc-ntk":
            raise UserError("corrupt is for features of images, such as features=scatter")

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """Poisson-sampled gradients and, for SGD, the number of records where it is private."""
        rate = sampling_probability(schema, self.batch, self.sampling_rate)
        steps = max(1, round(self._epochs / rate))
        gradients = Measurement(purpose=GRADIENT, draws=steps, sampling_probability=rate)
        count = Measurement(purpose=CLASS_COUNTS, share=self.count_share)
        regression = regression_for(self, schema, self._share_of_frequencies())
        kernel, m = regression.kernel, len(regression.support_y)
        width = kernel.size if isinstance(kernel, FeatureMap) else schema.width
        needs = Needs(
            memory=4e8 + 200 * m * width,
            seconds=10 + steps * m * width / 1e8,
            memory_per_record=8 * width,
            seconds_per_record=self._epochs * (m * width + 200 * m * m) / 5e9,
        )
        measurements = (gradients, count) if self._needs_count(schema) else (gradients,)
        return Plan(measurements=measurements, needs=needs)

    def run(self, private: HasSchema, run: Run) -> Distilled:
        """The support points, by Algorithm 1."""
        schema = private.schema
        regression = regression_for(self, schema, self._share_of_frequencies())

        # Step 1. Support points start from noise; their labels are fixed.
        start = noise_start(run.entropy, regression, self.start_scale)
        regression = self._corrupted(regression, run.entropy)

        # Steps 3 to 7. Sample, compute, clip, sum and noise, behind the wall.
        rows = read(private, run, "features")
        gradient = self._gradient(regression, rows, run)
        planned = run.ledger.planned(GRADIENT)
        expected_batch = 1.0  # Adam does not depend on the scale
        if self.optimiser == "sgd":
            expected_batch = planned.sampling_probability * self._count(schema, rows, run)

        # Step 8. Update; a gradient with respect to features is mapped to coordinates first.
        descent = Descent(
            steps=planned.draws,
            learning_rate=self.learning_rate,
            optimiser=self.optimiser,
            schedule=self.schedule,
        )
        support_x = descend(descent, start, lambda x: gradient(x) / expected_batch, run.progress)
        return bundled(self, self.features, schema, regression, support_x, run)

    def _gradient(self, regression: Regression, rows: Rows, run: Run) -> Gradient:
        """The noisy sum of clipped gradients over a fresh Poisson batch, in coordinates.

        The contribution depends on what gradients are clipped with respect to.
        """
        phi, inputs, clip = regression.kernel, regression.inputs, self._clip(regression)
        if isinstance(phi, InnerProductKernel):
            return self._by_points(phi, regression, rows, run)

        def features(x: NDArray[np.float32]) -> NDArray[np.float32]:
            return features_of(phi, inputs.from_records(x))

        if self.clip_in == "readout":
            codes = rows.derived(lambda x: outer.codes(features(x)), (phi.size,), np.int16)
            equal = np.ones(regression.support_y.shape[1])
            by_readout = self._summed(run, codes, ReadoutGradient("ridge", clip))
            return through_readout(regression, lambda w: by_readout(Readout(w, equal)))
        laid_out = rows.derived(lambda x: finite(features(x)), (phi.size,), np.float32)
        if self.clip_in == "features":
            by_features = self._summed(run, laid_out, FeatureGradient(clip))
            return through_features(regression, lambda f: by_features(regression.solution(f)))
        by_pixels = self._summed(run, laid_out, PixelGradient(clip))

        def in_pixels(support_x: NDArray[np.float32]) -> Floats:
            solution = regression.solution(canvas.features(phi, regression.canvas, support_x))
            return by_pixels((solution, canvas.jacobians(phi, regression.canvas, support_x)))

        return in_pixels

    def _by_points(
        self, kernel: InnerProductKernel, regression: Regression, rows: Rows, run: Run
    ) -> Gradient:
        inputs, size = regression.inputs, regression.inputs.basis.shape[1] + 1
        records = rows.derived(lambda x: ridge_points.coordinates(inputs, x), (size,), np.float64)
        contribution = ridge_points.PointGradient(self._clip(regression), kernel)
        by_points = self._summed(run, records, contribution)
        return lambda x: by_points(ridge_points.prepare(kernel, x, *regression[3:]))

    def _summed(self, run: Run, rows: Rows, contribution: Any) -> Callable[[Any], Floats]:
        return lambda public: run.sum(rows, contribution, public, purpose=GRADIENT)

    def _needs_count(self, schema: Schema) -> bool:
        return self.optimiser == "sgd" and schema.public_rows is None

    def _count(self, schema: Schema, rows: Rows, run: Run) -> float:
        """The number of records, public or noisy."""
        if schema.public_rows is not None:
            return schema.public_rows
        counts = run.sum(rows, ClassCounts(len(schema.classes)), purpose=CLASS_COUNTS)
        return max(1.0, float(counts.sum()))

    def _corrupted(self, regression: Regression, entropy: Entropy) -> Regression:
        """With a share of each point's pixels, picked at random, left at noise for good (§5)."""
        if not self.corrupt:
            return regression
        shape = regression.canvas.noise.shape
        noise = (self.start_scale * standard_normal(entropy, shape)).astype(np.float32)
        corrupted = ndtr(standard_normal(entropy, shape)) < self.corrupt
        return regression._replace(
            canvas=regression.canvas._replace(corrupted=corrupted, noise=noise)
        )

    @property
    def _epochs(self) -> float:
        if not isinstance(self.epochs, str):
            return self.epochs
        return 40.0 if self.features == "fc-ntk" else 20.0

    def _share_of_frequencies(self) -> float:
        """All, where noise is not added to them; else half of them along a side for one point a
        class, and fewer for more points."""
        noised = self.features == "fc-ntk" or self.clip_in == "pixels"
        if self.coordinates == "all" or (self.coordinates == "auto" and not noised):
            return 1.0
        return 0.5 * self.per_class**-0.15

    def _clip(self, regression: Regression) -> Clip:
        """A residual is seldom longer than one, and the gradient of the readout is as long. That
        of points in norm √D shrinks as 1/√D, and so does the constant."""
        if not isinstance(self.clip, str):
            return Clip(bound=self.clip)
        if self.clip == "auto" and isinstance(regression.kernel, InnerProductKernel):
            return Clip(bound=11 / math.sqrt(regression.inputs.dimension))
        if self.clip == "auto" and self.clip_in == "readout":
            return Clip(bound=1.0)
        return Clip()
