"""A private readout that names the class of generated images.

A generator with the right moments is good at what most images of a class look like, and bad at the
boundaries between classes. A readout of real images, learned with noise, knows these better, as
long as its features are ones that generated images share with real ones (`features/smooth.py`).
Latents are therefore drawn from a wider range than in training, which covers images between the
classes too, and the readout names the class of each image.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.features.base import features_of
from limbeck.features.inputs import ImageInputs
from limbeck.features.smooth import SmoothFourier
from limbeck.models.state import GeneratorState

# Latents of labelled images are this many times as wide as those of training.
WIDER = 2.0
# The number of images whose features are held in memory at a time.
AT_A_TIME = 4096
# The name of the features, all of whose settings are constants, and that of the saved array.
FEATURES, READOUT = "smooth-fourier", "labels.readout"


class Labeller(NamedTuple):
    """A linear readout W of the features φ."""

    phi: SmoothFourier
    readout: NDArray[np.float32]  # [f, c]

    def __call__(self, x: NDArray[np.floating]) -> NDArray[np.int64]:
        """The class of each encoded image."""
        inputs = ImageInputs(shape=self.phi.shape).from_records(x)
        pieces = (inputs[start : start + AT_A_TIME] for start in range(0, len(x), AT_A_TIME))
        return np.concatenate(
            [np.argmax(features_of(self.phi, piece) @ self.readout, axis=1) for piece in pieces]
        )


def added(generator: GeneratorState, labeller: Labeller) -> GeneratorState:
    """The same generator, saved together with its labeller."""
    config = {**generator.config, "labels": FEATURES}
    return GeneratorState(config, {**generator.arrays, READOUT: labeller.readout})


def of(generator: GeneratorState, schema: Schema) -> Labeller | None:
    """The inverse of `added`; None where the generator has no labeller.

    Raises
    ------
    LookupError, ValueError : it is incomplete, of other records, or of unknown features.
    """
    if "labels" not in generator.config:
        return None
    phi, readout = SmoothFourier(shape=schema.image_shape), generator.arrays[READOUT]
    fits = readout.shape == (phi.size, len(schema.classes))
    if generator.config["labels"] != FEATURES or not fits:
        raise ValueError("the labeller does not fit this schema")
    return Labeller(phi, np.asarray(readout, np.float32))
