"""Random Fourier features: cosines and sines at frequencies drawn once, for the Gaussian kernel.

    φ(x) = [cos ω₁ᵀx, ..., cos ω_mᵀx, sin ω₁ᵀx, ..., sin ω_mᵀx] / √m,       ω_i ~ N(0, I / ℓ²)
    E ⟨φ(x), φ(x')⟩ = k(x, x') = exp(−‖x − x'‖² / 2ℓ²)

because the inner product is the mean of cos ω_iᵀ(x − x'). Its deviation over frequencies is

    (1 − k(x, x')²) / √(2m),

at most 0.014 at m = 2500. The frequencies are public. Each cos² + sin² is 1, and so is the norm.

References
----------
Rahimi & Recht 2007; Harder, Adamczewski & Park 2021 (DP-MERF).
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fourier(FeatureMap):
    """Cosines and sines of records of `dimension` coordinates at `count` frequencies.

    `length_scale` is the ℓ of the Gaussian kernel.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> features = Fourier(dimension=64, count=100, length_scale=length_scale(64))
    >>> features(jnp.ones((3, 64))).shape
    (3, 200)
    """

    dimension: int
    length_scale: float
    count: int = 2500
    seed: int = 0

    @property
    def size(self) -> int:
        """A cosine and a sine a frequency."""
        return 2 * self.count

    @property
    def batch(self) -> int:
        """One product of matrices, for which this is enough."""
        return 256

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """All cosines, then all sines."""
        angles = x @ self._frequencies.astype(x.dtype)
        return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / math.sqrt(self.count)

    @functools.cached_property
    def _frequencies(self) -> Float[Array, "d m"]:
        with jax.ensure_compile_time_eval():
            shape = (self.dimension, self.count)
            normal = jax.random.normal(jax.random.key(self.seed), shape, jnp.float32)
            return normal / self.length_scale


def length_scale(dimension: int) -> float:
    """√(D/8): how far apart two records in [0, 1]^D are that differ by √⅛ in a coordinate.

    DP-MERF takes the median of the distances between private records. This takes nothing, and for
    pictures of handwritten digits it is nearly the same, where theirs is √105 = 10.2.

    Examples
    --------
    >>> round(length_scale(28 * 28), 1)
    9.9
    """
    return math.sqrt(dimension / 8)
