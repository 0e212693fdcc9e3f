"""Labels of generated pictures by a private readout of real ones (`--label-with readout`).

A generator with the right moments is good at what most pictures of a class look like, and bad at
where a class ends: pictures of two classes that it makes look alike. A readout that was learned
from the records themselves knows better, as long as it does not go by what generated pictures lack
(`features/smooth.py`). So pictures come from a wider range of codes than the generator was trained
on, into which fall those between the classes, too; and the readout says which class each is of.

**Guarantee.** The readout is `DESCENT.steps` Gaussian draws over all records, planned and
calibrated together with the moments (`models/softmax.py`). What it says of a generated picture is
post-processing.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.features.base import features_of
from limbeck.features.inputs import ImageInputs
from limbeck.features.smooth import SmoothFourier
from limbeck.measure.contributions.readout import GRADIENT
from limbeck.measure.readout import learn_readout
from limbeck.measure.rows import read
from limbeck.models.softmax import NoisyDescent
from limbeck.privacy.budget import Measurement
from limbeck.privacy.run import Run

if TYPE_CHECKING:
    from limbeck.bundle import Saved

DESCENT = NoisyDescent()
# Codes are so many times as wide as those of the training.
WIDER = 2.0
# So many pictures have their features in memory.
AT_A_TIME = 4096
# The features, all of whose settings are constants, and the array in a generator.
FEATURES, READOUT = "smooth-fourier", "labels.readout"


class Labeller(NamedTuple):
    """A readout W of the features φ."""

    phi: SmoothFourier
    readout: NDArray[np.float32]  # [f, c]

    def __call__(self, x: NDArray[np.floating]) -> NDArray[np.int64]:
        """The class of each encoded picture."""
        seen = ImageInputs(shape=self.phi.shape).from_records(x)
        pieces = (seen[start : start + AT_A_TIME] for start in range(0, len(x), AT_A_TIME))
        found = [np.argmax(features_of(self.phi, part) @ self.readout, axis=1) for part in pieces]
        return np.concatenate(found)


def planned(share: float) -> Measurement:
    """What it takes of the noise budget."""
    return Measurement(purpose=GRADIENT, draws=DESCENT.steps, share=share)


def measure(private: HasSchema, counts: NDArray[np.float64], run: Run) -> Labeller:
    """Learned behind the wall; `counts` are noisy."""
    phi = SmoothFourier(shape=private.schema.image_shape)
    rows = read(private, run, "features")
    readout = learn_readout(run, rows, phi, ImageInputs(shape=phi.shape), DESCENT, counts)
    return Labeller(phi, readout.astype(np.float32))


def added(generator: "Saved", labeller: Labeller) -> "Saved":
    """The same generator, which has its labeller with it."""
    config = {**generator.config, "labels": FEATURES}
    return type(generator)(config, {**generator.arrays, READOUT: labeller.readout})


def of(generator: "Saved", schema: Schema) -> Labeller | None:
    """The inverse; None where there is none.

    Raises
    ------
    ValueError : it is one of other records, or of features that are not known here.
    """
    if "labels" not in generator.config:
        return None
    labeller = Labeller(SmoothFourier(shape=schema.image_shape), generator.arrays[READOUT])
    found = generator.config["labels"], labeller.readout.shape
    if found != (FEATURES, (labeller.phi.size, len(schema.classes))):
        raise ValueError("the labeller is not one of this schema")
    return labeller
