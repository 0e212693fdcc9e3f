"""Random Fourier features of what is smooth in a picture, of unit norm.

    z = Bᵀx / ‖Bᵀx‖,        φ(x) = [cos ω_iᵀz, sin ω_iᵀz]_i / √m,        ω_i ~ N(0, I / ℓ²)

B are the lowest frequencies of the cosine transform, and x the picture less its own mean. So two
pictures are alike if they are after blurring, whatever their contrast, and what a generator adds in
fine grain makes no difference. There are few coordinates, so that a readout of them bears noise.

This is not in the papers.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap, unit_norm
from limbeck.features.fourier import Fourier
from limbeck.features.inputs import ImageInputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmoothFourier(FeatureMap):
    """Cosines and sines, at `count` frequencies, of a `share` of the cosines along each side.

    `length_scale` is that of the Gaussian kernel on the sphere of smooth pictures.

    Examples
    --------
    >>> SmoothFourier(shape=(28, 28, 1)).size
    2000
    """

    shape: tuple[int, int, int]
    share: float = 0.36
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
        basis, fourier = self._parts

        def one(record: Float[Array, " d"]) -> Float[Array, " f"]:
            return fourier(unit_norm(record[None] @ basis.astype(record.dtype)))[0]

        return jax.lax.map(one, x)

    @functools.cached_property
    def _parts(self) -> tuple[Float[Array, "d p"], Fourier]:
        """B, and the features of what it leaves."""
        with jax.ensure_compile_time_eval():
            basis = jnp.asarray(ImageInputs(shape=self.shape, share=self.share).basis, jnp.float32)
        p = basis.shape[1]
        return basis, Fourier(dimension=p, count=self.count, length_scale=self.length_scale)
