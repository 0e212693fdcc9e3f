"""Random Fourier features of what is smooth in a picture.

    z = Bᵀx / max(‖Bᵀx‖, √D/100),     φ(x) = [cos ω_iᵀz, sin ω_iᵀz]_i / √m,     ω_i ~ N(0, I/ℓ²)

B are the lowest frequencies of the cosine transform, and x the picture less its own mean, of norm
√D. So two pictures are alike if they are after blurring, whatever their contrast, and what a
generator adds in fine grain makes no difference. There are few coordinates, so that a readout of
them bears noise. A picture with next to nothing in B has its rounding errors there, which are not
to be stretched to norm one.

This is not in the papers.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.fft import dct

from limbeck.features.base import FeatureMap
from limbeck.features.fourier import Fourier


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmoothFourier(FeatureMap):
    """Cosines and sines at `count` frequencies of the `lowest` cosines along each side.

    `length_scale` is that of the Gaussian kernel on the sphere of smooth pictures.

    Examples
    --------
    >>> SmoothFourier(shape=(28, 28, 1)).size
    2000
    """

    shape: tuple[int, int, int]
    lowest: int = 10
    count: int = 1000
    length_scale: float = 0.5

    @property
    def size(self) -> int:
        """A cosine and a sine a frequency."""
        return 2 * self.count

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """All cosines, then all sines.

        One record at a time: each is then rounded alike, wherever it stands.
        """
        down, across = (self._cosines(side).astype(x.dtype) for side in self.shape[:2])
        least = math.sqrt(math.prod(self.shape)) / 100

        def one(record: Float[Array, " d"]) -> Float[Array, " f"]:
            picture = record.reshape(self.shape)
            z = jnp.einsum("hwc,hi,wj->ijc", picture, down, across).ravel()
            norm = jnp.sqrt(jnp.maximum(jnp.sum(z**2), least**2))
            return self.fourier((z / norm)[None])[0]

        return jax.lax.map(one, x)

    @property
    def fourier(self) -> Fourier:
        """The features of what is left of a picture."""
        height, width, channels = self.shape
        p = min(self.lowest, height) * min(self.lowest, width) * channels
        return Fourier(dimension=p, count=self.count, length_scale=self.length_scale)

    def _cosines(self, side: int) -> np.ndarray:
        return np.asarray(dct(np.eye(side), norm="ortho", axis=0)[: self.lowest].T)
