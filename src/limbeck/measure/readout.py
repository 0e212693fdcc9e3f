"""A private readout of features, for distillation and for labels of generated images."""

import numpy as np
from numpy.typing import NDArray

from limbeck.features.base import FeatureMap, features_of
from limbeck.features.inputs import Inputs
from limbeck.measure.contributions import outer
from limbeck.measure.contributions.readout import GRADIENT, Readout, ReadoutGradient
from limbeck.measure.rows import Rows
from limbeck.models.softmax import NoisyDescent, learn
from limbeck.privacy.clipping import Clip
from limbeck.privacy.run import Run

Floats = NDArray[np.float64]


def learn_readout(
    run: Run, rows: Rows, phi: FeatureMap, inputs: Inputs, descent: NoisyDescent, counts: Floats
) -> Floats:
    """W̃ [f, classes] of the features φ, by noisy gradients over all records; `counts` are noisy.

    **Guarantee.** As many Gaussian events without sampling as there are steps, with the bound of
    `ReadoutGradient`. Features are computed once, each from its record alone, and stay in memory as
    integers of two bytes.
    """
    features = rows.derived(
        lambda x: outer.codes(features_of(phi, inputs.from_records(x))), (phi.size,), np.int16
    )
    contribution = ReadoutGradient("softmax", Clip(bound=descent.clip))

    def gradient(readout: Floats, class_weights: Floats) -> Floats:
        public = Readout(readout, class_weights)
        return run.sum(features, contribution, public, purpose=GRADIENT)

    noise_multiplier = run.noise_multiplier(GRADIENT)
    return learn(gradient, descent, phi.size, counts, noise_multiplier, run.progress)
