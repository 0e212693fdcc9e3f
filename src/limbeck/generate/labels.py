"""Measuring the readout that labels generated images (`--label-with readout`).

**Guarantee.** The readout is `DESCENT.steps` Gaussian draws over all records, planned and
calibrated together with the moments (`measure/descent.py`). Labelling generated images with it
(`models/labeller.py`) is post-processing.
"""

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.features.inputs import ImageInputs
from limbeck.features.smooth import SmoothFourier
from limbeck.measure.descent import NoisyDescent, learn
from limbeck.measure.readout import GRADIENT, NoisyReadout
from limbeck.models.labeller import Labeller
from limbeck.privacy.budget import Measurement
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

DESCENT = NoisyDescent()


def planned(share: float) -> Measurement:
    """The measurement and its share of the noise budget."""
    return Measurement(purpose=GRADIENT, draws=DESCENT.steps, share=share)


def measure(
    private: Described,
    counts: NDArray[np.float64],
    noise_multiplier: float,
    *,
    ledger: Ledger,
    entropy: Entropy,
    progress: Progress = silent,
) -> Labeller:
    """Learn the readout behind the wall; `counts` are noisy class counts."""
    phi = SmoothFourier(shape=private.schema.image_shape)
    oracle = NoisyReadout(private, ledger=ledger, entropy=entropy, progress=progress)
    oracle.look(phi, ImageInputs(shape=phi.shape))
    readout = learn(oracle, DESCENT, phi.size, counts, noise_multiplier, progress)
    return Labeller(phi, readout.astype(np.float32))
