"""The neural tangent kernel of an infinitely wide, fully connected ReLU network, in closed form.

The network has ``depth`` hidden layers, Gaussian weights of variance ``weight_variance`` over
fan-in and Gaussian biases of variance ``bias_variance`` (NTK parameterisation), as in the
DP-KIP papers (W² = 2, b² = 0.01, one hidden layer). With θ the angle between two
pre-activations of covariance ``[[a, q], [q, b]]``:

    κ₁ = √(ab) / 2π · (sin θ + (π − θ) cos θ)        E[relu(u) relu(v)]
    κ₀ = (π − θ) / 2π                                E[relu'(u) relu'(v)]

    q  ← W² ⟨x, x'⟩ / D + b²                         first layer; NTK = q
    q' ← W² κ₁ + b²,  NTK ← q' + W² κ₀ · NTK         each hidden layer and the read-out

The kernel depends on its arguments only through ⟨x, x'⟩, ‖x‖² and ‖x'‖²; `InnerProductKernel`
says what that buys.

References
----------
Jacot et al. 2018; Lee et al. 2019; Cho & Saul 2009 for the arc-cosine kernels κ₀ and κ₁.
"""

import dataclasses
import math
from typing import Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.data.schema import Schema
from limbeck.features.base import InnerProductKernel
from limbeck.features.inputs import Inputs


@dataclasses.dataclass(frozen=True, kw_only=True)
class FCNTK(InnerProductKernel):
    """Fully connected ReLU NTK on ``dimension`` inputs.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> kernel = FCNTK(dimension=3)
    >>> x = jnp.array([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0]])
    >>> kernel.matrix(x, x).shape
    (2, 2)
    """

    dimension: int
    depth: int = 1
    weight_variance: float = 2.0
    bias_variance: float = 0.01

    @classmethod
    def for_schema(cls, schema: Schema, inputs: Inputs) -> Self:
        """The kernel on all coordinates of an encoded record."""
        return cls(dimension=inputs.dimension)

    def pair(
        self, dot: Float[Array, ""], norm_x: Float[Array, ""], norm_y: Float[Array, ""]
    ) -> Float[Array, ""]:
        """The NTK, layer by layer."""
        w, b = self.weight_variance, self.bias_variance
        covariance, variance_x, variance_y = (
            w * inner / self.dimension + b for inner in (dot, norm_x, norm_y)
        )
        ntk = covariance
        for _ in range(self.depth):
            kappa_1, kappa_0 = _arc_cosine(covariance, variance_x * variance_y)
            covariance = w * kappa_1 + b
            # On the diagonal κ₁ is half the variance, and stays so layer after layer.
            variance_x, variance_y = w * variance_x / 2 + b, w * variance_y / 2 + b
            ntk = covariance + w * kappa_0 * ntk
        return ntk

    def diagonal(self, norm: Float[Array, ""]) -> Float[Array, ""]:
        """The same at θ = 0, where κ₁ is half the variance and κ₀ is a half."""
        w, b = self.weight_variance, self.bias_variance
        variance = w * norm / self.dimension + b
        ntk = variance
        for _ in range(self.depth):
            variance = w * variance / 2 + b
            ntk = variance + w * ntk / 2
        return ntk


def _arc_cosine(
    covariance: Float[Array, ""], product: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """κ₁ and κ₀ from the covariance q and the product ab of the variances.

    At coincident points (θ = 0) κ₀ has an infinite slope; θ is held a little away from 0 and π
    there, where the slope is then zero and the value is off by less than the rounding of θ itself.
    """
    scale = jnp.sqrt(product)
    edge = 1 - 8 * float(np.finfo(covariance.dtype).eps)
    cosine = jnp.clip(covariance / scale, -edge, edge)
    theta = jnp.arccos(cosine)
    sine = jnp.sqrt(1 - cosine**2)
    kappa_1 = scale / (2 * math.pi) * (sine + (math.pi - theta) * cosine)
    kappa_0 = (math.pi - theta) / (2 * math.pi)
    return kappa_1, kappa_0
