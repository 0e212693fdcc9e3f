"""Measuring the readout that labels generated images (label_with=readout).

**Guarantee.** The readout is `DESCENT.steps` Gaussian draws over all records, planned and
calibrated together with the moments (`measure/readout.py`). Labelling generated images with it
(`models/labeller.py`) is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema
from limbeck.features.inputs import ImageInputs
from limbeck.features.smooth import SmoothFourier
from limbeck.measure.contributions.readout import GRADIENT
from limbeck.measure.readout import learn_readout
from limbeck.measure.rows import read
from limbeck.models.labeller import Labeller
from limbeck.models.softmax import NoisyDescent
from limbeck.privacy.budget import Measurement
from limbeck.privacy.run import Run

DESCENT = NoisyDescent()


def planned(share: float) -> Measurement:
    """The measurement and its share of the noise budget."""
    return Measurement(purpose=GRADIENT, draws=DESCENT.steps, share=share)


def measure(private: HasSchema, counts: NDArray[np.float64], run: Run) -> Labeller:
    """Learn the readout behind the wall; `counts` are noisy class counts."""
    phi = SmoothFourier(shape=private.schema.image_shape)
    rows = read(private, run, "features")
    readout = learn_readout(run, rows, phi, ImageInputs(shape=phi.shape), DESCENT, counts)
    return Labeller(phi, readout.astype(np.float32))
