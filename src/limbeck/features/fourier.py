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
        waves = _cos_and_sin(x @ self._frequencies.astype(x.dtype))
        return jnp.concatenate(waves, axis=1) / math.sqrt(self.count)

    @functools.cached_property
    def _frequencies(self) -> Float[Array, "d m"]:
        with jax.ensure_compile_time_eval():
            shape = (self.dimension, self.count)
            normal = jax.random.normal(jax.random.key(self.seed), shape, jnp.float32)
            return normal / self.length_scale


def _cos_and_sin(angles: Float[Array, "n m"]) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
    """Of every angle; in float32, which generators are trained in, to 5e-7.

    XLA calls a function for each number, and both took as long as the product of matrices that
    angles are. So whole turns are taken off, in two parts of which the first is exact; of a quarter
    of the rest, which is within π/4, Taylor's series are short; and the angle is doubled twice.
    """
    if angles.dtype != jnp.float32:
        return jnp.cos(angles), jnp.sin(angles)
    turns = jnp.round(angles / (2 * math.pi))
    quarter = ((angles - 6.28125 * turns) - (2 * math.pi - 6.28125) * turns) / 4
    square = quarter**2
    cos = 1 - square / 2 * (1 - square / 12 * (1 - square / 30 * (1 - square / 56)))
    sin = 1 - square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72)))
    sin = quarter * sin
    for _ in range(2):
        cos, sin = cos**2 - sin**2, 2 * sin * cos
    return cos, sin


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
