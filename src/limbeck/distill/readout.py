"""Readout distillation: learn a private readout of fixed features, then find points that have it.

On a feature map φ the kernel ridge predictor of a support set is a linear readout W = Φᵀα of φ. So

1. learn a readout W̃ under privacy, where that is convex, of few dimensions and cheap: softmax
   regression by noisy gradients over all records (`measure/readout.py`, `measure/descent.py`);
2. find, by ordinary optimisation, points X whose kernel ridge readout is W̃. Give each point the
   label Y = Φ W̃, what the readout says of it; then with M = ΦΦᵀ + λ tr(ΦΦᵀ)/m · I

       W(X) = Φᵀ M⁻¹ Φ W̃,

   which is W̃ projected on the span of the points' features. X minimises ‖W̃ − W(X)‖². For tables
   readouts are compared by what they say of made-up rows instead, and projected accordingly.

**Guarantee.** W̃ is a function of T + 1 Gaussian draws without sampling (the gradients, and the
class counts), on bins of one more (histograms of the columns), each with the sensitivity that
`measure/readout.py` states; their composition is (ε, δ)-DP for the budget's adjacency, exactly.
Step 2 (`distill/matching.py`) sees W̃ and no record: post-processing, of any length.

The number of steps, the clip and the momentum are constants. The rate and, for tables, the number
of features follow from the noise and the noisy counts (`readout_rate`, `knots_per_number`). Nothing
is chosen by scores on records.

This is not in the papers.
"""

import dataclasses
import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Described, Schema
from limbeck.distill.kip import check_settings
from limbeck.distill.matching import Search
from limbeck.errors import UserError
from limbeck.features import kernels
from limbeck.features.base import FeatureMap
from limbeck.features.bins import Bins, knots_of
from limbeck.features.empirical_ntk import EmpiricalNTK
from limbeck.features.inputs import Inputs, inputs_of
from limbeck.measure.descent import NoisyDescent, learn
from limbeck.measure.readout import COUNTS, GRADIENT, HISTOGRAMS, NoisyReadout
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import entropy
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle, Distilled

Floats = NDArray[np.float64]

# Of the smallest class, how many records stand against one unit of noise in a feature.
RECORDS_PER_NOISE = 10.0
FEWEST_KNOTS, MOST_KNOTS = 2, 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Readout:
    """Distil under differential privacy, by way of a readout.

    Attributes
    ----------
    per_class : support points for each class.
    features : the feature map, by name; "auto" is whitened scattering for pictures and bins for
        tables. "fc-ntk" is that kernel at a finite width.
    steps : noisy gradient steps of the readout, each over all records.
    clip : the norm to which gradients are clipped; that of a record in doubt is about one.
    momentum, averaged : of these steps; the readout is the mean after so many of the last ones.
    rate : of these steps, per mean clipped gradient; "auto" is `readout_rate`.
    count_share, histogram_share : of the noise budget, relative to that of the gradients.
    learning_rate, rounds : of points that are pictures: Adam's rate, and how often it may start
        again; a round is 100 steps, for tables of L-BFGS.
    regularisation : λ, relative to the mean of the kernel's diagonal.
    start_scale : the standard deviation of the noise that the points start from.
    labels : "soft" for what the readout says of a point; "hard" for its class alone.
    box : keep points within the range of records, so that pictures can be shown as they are.
    smoothness : weight of the total variation of pictures against the residual.

    Examples
    --------
    >>> Readout(per_class=1).steps
    100
    """

    per_class: int = 10
    features: str = "auto"
    steps: int = 100
    clip: float = 0.5
    momentum: float = 0.9
    averaged: int = 11
    rate: float | Literal["auto"] = "auto"
    count_share: float = 0.01
    histogram_share: float = 0.05
    learning_rate: float = 0.1
    rounds: int = 6
    regularisation: float = 1e-3
    start_scale: float = 0.3
    labels: Literal["soft", "hard"] = "soft"
    box: bool = False
    smoothness: float = 0.0

    name = "readout"

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.clip, str):
            raise UserError(f"--clip must be a number for readout, not '{self.clip}'")
        if self.momentum >= 1:
            raise UserError(f"--momentum must be below one, not {self.momentum:g}")

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
        name, inputs = _features_for(self.features, schema), inputs_of(schema)
        phi = _finite_width(name, schema, inputs)
        if self.smoothness and not schema.is_image:
            raise UserError("--smoothness is for pictures; a table has no neighbouring values")

        # The noise that the whole plan needs.
        columns = np.array(phi.numbers if isinstance(phi, Bins) else (), np.intp)
        plan = [
            Measurement(purpose=GRADIENT, draws=self.steps),
            Measurement(purpose=COUNTS, share=self.count_share),
        ]
        if len(columns):
            plan.append(Measurement(purpose=HISTOGRAMS, share=self.histogram_share))
        progress("calibrate", 0, 0)
        ledger = Ledger(calibrate(plan, budget))
        noise = {entry.purpose: float(entry.noise_multiplier or 0) for entry in ledger.plan}

        # Step 1, behind the wall: the private readout.
        oracle = NoisyReadout(private, ledger=ledger, entropy=source, progress=progress)
        try:
            counts = np.maximum(oracle.class_counts(), noise[COUNTS])
            once = noise[GRADIENT] / math.sqrt(self.steps)
            if isinstance(phi, Bins) and len(columns):
                knots = knots_per_number(
                    float(counts.min()),
                    once,
                    phi.dimension - len(columns) + 1,
                    len(columns),
                    self.per_class * len(counts),
                )
                deviation = noise[HISTOGRAMS] * math.sqrt(len(columns))
                histograms, rows = oracle.histograms(columns), float(counts.sum())
                placed = tuple(knots_of(h, deviation, rows, knots) for h in histograms)
                phi = dataclasses.replace(phi, knots=placed)
            oracle.look(phi, inputs)
            descent = NoisyDescent(self.steps, self.clip, self.momentum, self.averaged, self.rate)
            readout = learn(oracle, descent, phi.size, counts, noise[GRADIENT], progress)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None

        # Step 2, post-processing: points that have it.
        found = Search(self, phi, inputs, schema, readout)
        try:
            support, labels = found.run(source, progress)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
        return Distilled.of(
            method=self,
            schema=schema,
            x=inputs.to_support(support),
            y=labels + 1 / len(schema.classes),
            kernel=kernels.to_json(name, phi),
            regularisation=self.regularisation,
            budget=budget,
            ledger=ledger,
            seeded=source.seeded,
        )


def knots_per_number(rarest: float, once: float, others: int, numbers: int, points: int) -> int:
    """As many knots as the rarest class can carry, and no more than there will be points.

    The sum of n unit vectors against noise of length `once`·√F: n / (once √F) is to be no less than
    `RECORDS_PER_NOISE`. Few points cannot have a readout of many knots.
    """
    features = (rarest / (RECORDS_PER_NOISE * once)) ** 2
    carried = int(max((features - others) // numbers, FEWEST_KNOTS))
    return min(carried, max(points, FEWEST_KNOTS), MOST_KNOTS)


def _features_for(name: str, schema: Schema) -> str:
    if name == "auto":
        return "whitened-scatter" if schema.is_image else "bins"
    return "e-ntk" if name == "fc-ntk" else name


def _finite_width(name: str, schema: Schema, inputs: Inputs) -> FeatureMap:
    """The feature map of that name; for e-NTK on tables, a fully connected network."""
    if name == "e-ntk" and not schema.is_image:
        return EmpiricalNTK(shape=(1, 1, inputs.dimension), net="fully-connected")
    phi = kernels.for_schema(name, schema, inputs)
    assert isinstance(phi, FeatureMap)
    return phi
