"""What a kernel sees of a record, and the coordinates in which support points are learned.

Everything here is a function of one record and of the public schema: no mean, scale or basis is
taken from the data.

Images: the record's own mean is taken off and the record is scaled to norm √D, so that a bright
and a dark picture of the same thing look alike. Support points move in the low spatial
frequencies only (2-D discrete cosine basis), where pictures differ and where there are few
coordinates to spend noise on. Tables: unit-scaled values are shifted to [−1, 1].
"""

import dataclasses
import functools
import math

import numpy as np
from scipy.fft import dct

from limbeck.data.schema import Schema

LEAST = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageInputs:
    """Pictures of `shape` (height, width, channels) with pixels scaled to [0, 1].

    `share` is the share of the frequencies along a side that is kept, the lowest ones; but never
    fewer than `LEAST`.
    """

    shape: tuple[int, int, int]
    share: float = 1.0

    @property
    def dimension(self) -> int:
        """The number of pixels D."""
        return math.prod(self.shape)

    def from_records(self, x: np.ndarray) -> np.ndarray:
        """(x − mean of x) · √D / ‖x − mean of x‖; a picture of one colour becomes zero."""
        centred = x - x.mean(axis=1, keepdims=True)
        norms = np.linalg.norm(centred, axis=1, keepdims=True)
        return centred * (math.sqrt(self.dimension) / np.maximum(norms, 1e-3))

    def from_support(self, x: np.ndarray) -> np.ndarray:
        """The inverse of `to_support`."""
        return (x - 0.5) * 4

    def to_support(self, inputs: np.ndarray) -> np.ndarray:
        """Support points in units of pixels; beyond [0, 1] where they need to be."""
        return inputs / 4 + 0.5

    @functools.cached_property
    def basis(self) -> np.ndarray:
        """Orthonormal columns (D × p): low frequencies in each channel."""
        height, width, channels = self.shape
        rows, columns = self._cosines(height), self._cosines(width)
        plane = np.einsum("hi,wj->hwij", rows, columns).reshape(height * width, -1)
        return np.kron(plane, np.eye(channels))

    def _cosines(self, side: int) -> np.ndarray:
        kept = min(side, max(LEAST, round(self.share * side)))
        return np.asarray(dct(np.eye(side), norm="ortho", axis=0)[:kept].T)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableInputs:
    """Rows of `dimension` coordinates scaled to [0, 1]."""

    dimension: int

    def from_records(self, x: np.ndarray) -> np.ndarray:
        """To [−1, 1]."""
        return 2 * x - 1

    def from_support(self, x: np.ndarray) -> np.ndarray:
        """The inverse of `to_support`."""
        return 2 * x - 1

    def to_support(self, inputs: np.ndarray) -> np.ndarray:
        """Support points in units of the encoding; beyond [0, 1] where they need to be."""
        return (inputs + 1) / 2

    @functools.cached_property
    def basis(self) -> np.ndarray:
        """All coordinates."""
        return np.eye(self.dimension)


Inputs = ImageInputs | TableInputs


def inputs_of(schema: Schema, share: float = 1.0) -> Inputs:
    """What a kernel sees of the records that the schema describes.

    `share` is that of the frequencies in which support points are learned, where there are any.
    """
    if schema.is_image:
        return ImageInputs(shape=schema.image_shape, share=share)
    return TableInputs(dimension=schema.width)
