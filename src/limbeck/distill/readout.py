"""Readout distillation: learn a private readout of fixed features, then find points that have it.

On a feature map φ the kernel ridge predictor of a support set is a linear readout W = Φᵀα of φ. So

1. learn a readout W̃ under privacy, where that is convex, of few dimensions and cheap: softmax
   regression by noisy gradients over all records (`measure/readout.py`, `models/softmax.py`);
2. find, by ordinary optimisation, points X whose kernel ridge readout is W̃. Give each point the
   label Y = Φ W̃, what the readout says of it; then with M = ΦΦᵀ + λ tr(ΦΦᵀ)/m · I

       W(X) = Φᵀ M⁻¹ Φ W̃,

   which is W̃ projected on the span of the points' features. X minimises ‖W̃ − W(X)‖². For tables
   readouts are compared by their predictions for synthetic rows instead, and projected accordingly.

**Guarantee.** W̃ is a function of T + 1 Gaussian draws without sampling (the gradients, and the
class counts), on knots of one more (histograms of the columns), each with the bound that its
contribution states; their composition is (ε, δ)-DP for the budget's adjacency, exactly.
Step 2 (`distill/matching.py`) sees W̃ and no record: post-processing, of any length.

The number of steps, the clip and the momentum are constants. The rate and, for tables, the number
of features follow from the noise and the noisy counts (`readout_rate`, `knots_per_number`). Nothing
is chosen by scores on records.

This is not in the papers.
"""

import dataclasses
import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.distill.matching import Search
from limbeck.errors import UserError
from limbeck.features import kernels
from limbeck.features.base import FeatureMap
from limbeck.features.bins import HISTOGRAM_BINS, Bins, knots_of
from limbeck.features.inputs import inputs_of
from limbeck.measure.contributions.counts import CLASS_COUNTS, HISTOGRAMS, ClassCounts, Histograms
from limbeck.measure.contributions.readout import GRADIENT
from limbeck.measure.readout import learn_readout
from limbeck.measure.rows import Rows, read
from limbeck.method import Method, setting
from limbeck.models.softmax import NoisyDescent
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Distilled

Floats = NDArray[np.float64]

# Of the smallest class, how many records stand against one unit of noise in a feature.
RECORDS_PER_NOISE = 10.0
FEWEST_KNOTS, MOST_KNOTS = 2, 8


class Readout(Method):
    """Distil under differential privacy, by way of a readout.

    Examples
    --------
    >>> Readout(per_class=1).steps
    100
    """

    per_class: int = setting(default=10, meaning="Number of points for each class.")
    features: str = setting(
        default="auto",
        meaning=(
            "Feature map; auto is whitened-scatter for images and bins for tables, and fc-ntk "
            "that kernel at a finite width."
        ),
    )
    steps: int = setting(
        default=100, meaning="Noisy gradient steps of the readout, each over all records."
    )
    clip: float = setting(default=0.5, meaning="Norm to which the gradient of a record is clipped.")
    momentum: float = setting(default=0.9, meaning="Momentum of the gradient steps.", below=1)
    averaged: int = setting(
        default=11, meaning="The readout is the mean over this many of the last steps."
    )
    rate: float | Literal["auto"] = setting(
        default="auto", meaning="Step size per mean clipped gradient; auto follows from the noise."
    )
    count_share: float = setting(
        default=0.01, meaning="Share of the noise budget for the class counts."
    )
    histogram_share: float = setting(
        default=0.05, meaning="Share of the noise budget for column histograms."
    )
    learning_rate: float = setting(default=0.1, meaning="Rate of Adam for points that are images.")
    restarts: int = setting(default=6, meaning="How often the search for points may start again.")
    regularisation: float = setting(
        default=1e-3, meaning="λ, relative to the mean of the kernel's diagonal."
    )
    start_scale: float = setting(
        default=0.3, meaning="Standard deviation of the noise that points start from."
    )
    labels: Literal["soft", "hard"] = setting(
        default="soft",
        meaning="Labels of points: the prediction of the readout, or its class alone.",
    )
    clip_to_domain: bool = setting(
        default=False, meaning="Keep points within the range of records."
    )
    smoothness: float = setting(
        default=0.0,
        meaning="Weight of the total variation of images against the residual.",
        least=0,
    )

    name: ClassVar = "readout"
    command: ClassVar = "distill"
    summary: ClassVar = "a private linear readout of fixed features, then points that reproduce it"
    guarantee: ClassVar = "(ε, δ)-DP by composition of Gaussian draws over all records"
    paper: ClassVar = "ours"
    docs: ClassVar = "docs/readout.md"

    def check(self) -> None:
        """Refuse unknown features."""
        if self.features != "auto":
            kernels.find(self.features)

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """The gradients, the class counts and, for numbers of a table, histograms."""
        phi = self._feature_map(schema)
        measurements = [
            Measurement(purpose=GRADIENT, draws=self.steps),
            Measurement(purpose=CLASS_COUNTS, share=self.count_share),
        ]
        if isinstance(phi, Bins) and phi.numbers:
            measurements.append(Measurement(purpose=HISTOGRAMS, share=self.histogram_share))
        numbers = phi.size * (self.steps * len(schema.classes) + 100)
        needs = Needs(
            memory=4e8 + 40 * phi.size * self.per_class * len(schema.classes),
            seconds=20 if schema.is_image else 5,
            memory_per_record=2 * phi.size + 5 * schema.width,
            seconds_per_record=4 * numbers / 2e10,
        )
        return Plan(measurements=tuple(measurements), needs=needs)

    def run(self, private: HasSchema, run: Run) -> Distilled:
        """The private readout, then points that have it."""
        schema, inputs = private.schema, inputs_of(private.schema)
        phi = self._feature_map(schema)

        # Step 1, behind the wall: the private readout.
        rows = read(private, run).kept()
        counts = run.sum(rows, ClassCounts(len(schema.classes)), purpose=CLASS_COUNTS)
        counts = np.maximum(counts, run.noise_multiplier(CLASS_COUNTS))
        if isinstance(phi, Bins) and phi.numbers:
            phi = self._with_knots(phi, run, rows, counts)
        descent = NoisyDescent(self.steps, self.clip, self.momentum, self.averaged, self.rate)
        readout = learn_readout(run, rows, phi, inputs, descent, counts)

        # Step 2, post-processing: points that have it.
        support, labels = Search(self, phi, inputs, schema, readout).run(run.entropy, run.progress)
        return Distilled.of(
            method=self,
            schema=schema,
            x=inputs.to_support(support),
            y=labels + 1 / len(schema.classes),
            kernel=kernels.to_json(self._features_for(schema), phi),
            regularisation=self.regularisation,
            **run.made(),
        )

    def _with_knots(self, phi: Bins, run: Run, rows: Rows, counts: Floats) -> Bins:
        """The feature map with knots where the records are, by noisy histograms."""
        numbers = len(phi.numbers)
        once = run.noise_multiplier(GRADIENT) / math.sqrt(self.steps)
        others, points = phi.dimension - numbers + 1, self.per_class * len(counts)
        knots = knots_per_number(float(counts.min()), once, others, numbers, points)
        thresholds = tuple(np.arange(1, HISTOGRAM_BINS) / HISTOGRAM_BINS)
        contribution = Histograms(phi.numbers, (thresholds,) * numbers)
        histograms = run.sum(rows, contribution, purpose=HISTOGRAMS)
        deviation, total = run.deviation(HISTOGRAMS, contribution), float(counts.sum())
        placed = tuple(knots_of(h, deviation, total, knots) for h in histograms)
        return dataclasses.replace(phi, knots=placed)

    def _features_for(self, schema: Schema) -> str:
        if self.features == "auto":
            return "whitened-scatter" if schema.is_image else "bins"
        return "e-ntk" if self.features == "fc-ntk" else self.features

    def _feature_map(self, schema: Schema) -> FeatureMap:
        """The feature map of that name."""
        if self.smoothness and not schema.is_image:
            raise UserError("smoothness is for images; a table has no neighbouring values")
        name, inputs = self._features_for(schema), inputs_of(schema)
        phi = kernels.for_schema(name, schema, inputs)
        assert isinstance(phi, FeatureMap)
        return phi


def knots_per_number(rarest: float, once: float, others: int, numbers: int, points: int) -> int:
    """As many knots as the rarest class can carry, and no more than there will be points.

    The sum of n unit vectors against noise of length `once`·√F: n / (once √F) is to be no less than
    `RECORDS_PER_NOISE`. Few points cannot have a readout of many knots.
    """
    features = (rarest / (RECORDS_PER_NOISE * once)) ** 2
    carried = int(max((features - others) // numbers, FEWEST_KNOTS))
    return min(carried, max(points, FEWEST_KNOTS), MOST_KNOTS)
