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

From the readout to the features, and from the features to the points, the noisy sum is pulled back
by the chain rule, which sees the support set and the sum, and no record: post-processing.

Labels are fixed and balanced over the declared classes. Nothing else is read from the records,
except, for SGD where the row count is private, one noisy count. Which pixels are corrupted, and
with what, is noise that knows no record.

Where it differs from the paper, for accuracy at the same budget: larger and truly random batches,
a decaying rate, records normalised one by one; on the FC-NTK support points in low frequencies, on
features gradients of the readout.
"""

import dataclasses
import math
from typing import Literal

import numpy as np
from scipy.special import ndtr

from limbeck.data.schema import Described
from limbeck.distill.kip import (
    Descent,
    Gradient,
    bundled,
    check_settings,
    descend,
    noise_start,
    regression_for,
    sampling_probability,
    through_features,
    through_readout,
)
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, InnerProductKernel
from limbeck.measure.gradients import COUNT, GRADIENT, NoisyGradient
from limbeck.measure.records import (
    FeatureRecords,
    KernelRecords,
    PixelRecords,
    PulledRecords,
    ReadoutRecords,
    Records,
    Regression,
)
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import Entropy, entropy, standard_normal
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPKIP:
    """Distil under differential privacy.

    Attributes
    ----------
    per_class : support points for each class.
    features : the kernel, by name.
    epochs : how often each record is drawn on average; steps = epochs / sampling rate. "auto" is 40
        on the FC-NTK and 20 on features, where more hardly helps.
    sampling_rate, batch : the chance of each record to be in a batch; or the expected batch size,
        where the row count is public.
    clip : the norm C to which gradients are clipped; "normalise" scales each to norm one; "auto" is
        11/√D on the FC-NTK, 1 for the readout of features, and normalises elsewhere.
    clip_in : for features, what gradients are clipped and noised with respect to.
    coordinates : in which coordinates the points of images are learned: in low frequencies, the
        fewer the more points there are to spread the noise over, or in all; "auto" takes low
        frequencies where the coordinates themselves are noised.
    corrupt : the share of pixels that stay at the noise they start from (Table 4).
    learning_rate, optimiser, schedule : see `Descent`.
    regularisation : λ, relative to the mean of the kernel's diagonal.
    start_scale : the standard deviation of the noise that the points start from.

    Examples
    --------
    >>> DPKIP(per_class=1, epochs=10, sampling_rate=0.1).per_class
    1
    """

    per_class: int = 10
    features: str = "fc-ntk"
    epochs: float | Literal["auto"] = "auto"
    sampling_rate: float = 1 / 12
    batch: int | None = None
    clip: float | Literal["auto", "normalise"] = "auto"
    clip_in: Literal["readout", "features", "pixels"] = "readout"
    coordinates: Literal["auto", "low-frequency", "all"] = "auto"
    learning_rate: float = 0.1
    optimiser: Literal["adam", "sgd"] = "adam"
    schedule: Literal["cosine", "constant"] = "cosine"
    regularisation: float = 1e-4
    start_scale: float = 0.3
    count_share: float = 0.01
    corrupt: float = 0.0

    name = "dp-kip"

    def __post_init__(self) -> None:
        check_settings(self)
        if self.corrupt >= 1:
            raise UserError(f"--corrupt is a share of the pixels below one, not {self.corrupt:g}")
        if self.corrupt and self.features == "fc-ntk":
            raise UserError("--corrupt is for features of pictures, such as --features scatter")

    def fit(
        self,
        private: Described,
        budget: Budget,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> Bundle:
        """The distilled set, its ledger and how to use it."""
        schema, source = private.schema, entropy(seed)
        regression = regression_for(self, schema, self._share_of_frequencies())
        rate = sampling_probability(schema, self.batch, self.sampling_rate)
        steps = max(1, round(self._epochs / rate))

        # Step 1. Support points start from noise; their labels are fixed.
        start = noise_start(source, regression, self.start_scale)
        regression = self._corrupted(regression, source)

        # Step 2. The noise that the whole plan needs.
        needs_count = self.optimiser == "sgd" and schema.public_rows is None
        plan = [Measurement(purpose=GRADIENT, draws=steps, sampling_probability=rate)]
        if needs_count:
            plan.append(Measurement(purpose=COUNT, share=self.count_share))
        progress("calibrate", 0, 0)
        ledger = Ledger(calibrate(plan, budget))

        # Steps 3 to 7. Sample, compute, clip, sum and noise, behind the wall.
        progress("read", 0, 0)
        noisy_sum = NoisyGradient(
            private,
            regression,
            self._kind(regression, rate * (schema.public_rows or math.inf)),
            clip=self._clip(regression),
            sampling_probability=rate,
            ledger=ledger,
            entropy=source,
            progress=progress,
        )
        rows = max(1, round(noisy_sum.count())) if needs_count else schema.public_rows
        expected_batch = rate * rows if rows is not None else 1.0  # Adam does not need it

        # Step 8. Update; a gradient with respect to features is pulled back to coordinates first.
        gradient: Gradient = noisy_sum
        if isinstance(regression.kernel, FeatureMap) and self.clip_in != "pixels":
            through = through_features if self.clip_in == "features" else through_readout
            gradient = through(regression, noisy_sum)
        try:
            support_x = descend(
                Descent.of(self, steps), start, lambda x: gradient(x) / expected_batch, progress
            )
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
        return bundled(self, schema, regression, support_x, budget, ledger, source)

    def _corrupted(self, regression: Regression, source: Entropy) -> Regression:
        """With a share of each point's pixels, picked at random, left at noise for good (§5)."""
        if not self.corrupt:
            return regression
        shape = regression.canvas.noise.shape
        noise = (self.start_scale * standard_normal(source, shape)).astype(np.float32)
        corrupted = ndtr(standard_normal(source, shape)) < self.corrupt
        return regression._replace(
            canvas=regression.canvas._replace(corrupted=corrupted, noise=noise)
        )

    def _kind(self, regression: Regression, expected_batch: float) -> type[Records]:
        """What the gradients of the records are taken with respect to."""
        if isinstance(regression.kernel, InnerProductKernel):
            return KernelRecords
        pull = PulledRecords.suits(regression, expected_batch)
        in_pixels = PulledRecords if pull else PixelRecords
        kinds = {"readout": ReadoutRecords, "features": FeatureRecords, "pixels": in_pixels}
        return kinds[self.clip_in]

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
