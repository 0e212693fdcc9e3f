"""Kernel ridge regression on finite features is a linear readout.

With Φ (m × F) the features of the support points, K = ΦΦᵀ, M = K + λ tr(K)/m · I and α = M⁻¹ Y_s,
the prediction for a record is α ᵀΦ φ = Wᵀφ with W = Φᵀα (F × c).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Ridge(NamedTuple):
    """The solution on a support set."""

    features: Float[Array, "m f"]  # Φ
    gram: Float[Array, "m m"]  # K
    inverse: Float[Array, "m m"]  # M⁻¹
    alpha: Float[Array, "m c"]
    ridge: Float[Array, ""]  # λ/m

    @property
    def readout(self) -> Float[Array, "f c"]:
        """W."""
        return self.features.T @ self.alpha


@jax.jit
def solve(
    features: Float[Array, "m f"], y: Float[Array, "m c"], regularisation: Float[Array, ""]
) -> Ridge:
    """In the precision of the arguments, which should be double."""
    m, gram = len(features), features @ features.T
    inverse = jnp.linalg.inv(gram + regularisation * jnp.trace(gram) / m * jnp.eye(m))
    inverse = (inverse + inverse.T) / 2
    return Ridge(features, gram, inverse, inverse @ y, jnp.asarray(regularisation / m))


@jax.jit
def pull_back(solution: Ridge, by_readout: Float[Array, "f c"]) -> Float[Array, "m f"]:
    """∂loss/∂Φ from ∂loss/∂W."""
    phi, alpha = solution.features, solution.alpha
    by_m = -(solution.inverse @ (phi @ by_readout)) @ alpha.T
    by_gram = by_m + solution.ridge * jnp.trace(by_m) * jnp.eye(len(alpha))
    return alpha @ by_readout.T + (by_gram + by_gram.T) @ phi
