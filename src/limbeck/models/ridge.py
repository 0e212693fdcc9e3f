"""Kernel ridge regression on a support set: how a distilled set is used.

    α = (K_ss + λ tr(K_ss)/m · I)⁻¹ Y_s,      f(x) = k(x, X_s) α          (Eq. 3)

With finite features Φ (m × F) of the support points, K_ss = ΦΦᵀ, and the prediction for a record
with features φ is Wᵀφ with the linear readout W = Φᵀα (F × c): the points themselves are not
needed to predict.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.features.inputs import Inputs
from limbeck.features.kernels import Kernel

PIECE = 1024


class Ridge(NamedTuple):
    """The solution on the features of a support set."""

    features: Float[Array, "m f"]  # Φ
    gram: Float[Array, "m m"]  # K
    inverse: Float[Array, "m m"]  # M⁻¹
    alpha: Float[Array, "m c"]
    ridge: Float[Array, ""]  # λ/m

    @property
    def readout(self) -> Float[Array, "f c"]:
        """The linear readout W."""
        return self.features.T @ self.alpha


@jax.jit
def solve(
    features: Float[Array, "m f"], y: Float[Array, "m c"], regularisation: Float[Array, ""]
) -> Ridge:
    """Solve for α in the precision of the arguments, which should be double."""
    m, gram = len(features), features @ features.T
    inverse = jnp.linalg.inv(gram + regularisation * jnp.trace(gram) / m * jnp.eye(m))
    inverse = (inverse + inverse.T) / 2
    return Ridge(features, gram, inverse, inverse @ y, jnp.asarray(regularisation / m))


@jax.jit
def pull_back(solution: Ridge, by_readout: Float[Array, "f c"]) -> Float[Array, "m f"]:
    """The gradient ∂loss/∂Φ from ∂loss/∂W."""
    phi, alpha = solution.features, solution.alpha
    by_m = -(solution.inverse @ (phi @ by_readout)) @ alpha.T
    by_gram = by_m + solution.ridge * jnp.trace(by_m) * jnp.eye(len(alpha))
    return alpha @ by_readout.T + (by_gram + by_gram.T) @ phi


class KernelRidge:
    """The predictor of a support set.

    Arguments are in the units of the encoding, [0, 1] for records: `x` holds the support points and
    `y` their labels, with one weight per class. `scores` are regression values, not probabilities;
    the largest names the class.
    """

    def __init__(
        self,
        kernel: Kernel,
        inputs: Inputs,
        x: NDArray[np.floating],
        y: NDArray[np.floating],
        regularisation: float,
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.regularisation = regularisation
        self.support = np.asarray(inputs.from_support(x), np.float32)
        with jax.enable_x64(True):
            points, labels = jnp.asarray(self.support, jnp.float64), jnp.asarray(y, jnp.float64)
            if isinstance(kernel, FeatureMap):
                features = jnp.asarray(features_of(kernel, self.support), jnp.float64)
                solution = solve(features, labels, regularisation)
                self.alpha = np.asarray(solution.alpha, np.float32)
                self.readout = np.asarray(solution.readout, np.float32)
            else:
                self.alpha = np.asarray(
                    _solve_kernel(kernel, points, labels, regularisation), np.float32
                )

    def scores(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        """One regression value per class for each encoded record."""
        starts = range(0, max(len(x), 1), PIECE)
        return np.concatenate([self._piece(x[start : start + PIECE]) for start in starts])

    def _piece(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        inputs = np.asarray(self.inputs.from_records(x), np.float32)
        if isinstance(self.kernel, FeatureMap):
            return features_of(self.kernel, inputs) @ self.readout
        padded = np.zeros((PIECE, x.shape[1]), np.float32)
        padded[: len(x)] = inputs
        return np.asarray(_predict(self.kernel, self.support, self.alpha, padded))[: len(x)]


@functools.partial(jax.jit, static_argnames=("kernel",))
def _solve_kernel(
    kernel: InnerProductKernel,
    x: Float[Array, "m d"],
    y: Float[Array, "m c"],
    regularisation: float,
) -> Float[Array, "m c"]:
    k = kernel.symmetric(x)
    shift = regularisation * jnp.trace(k) / len(x)
    return jax.scipy.linalg.solve(k + shift * jnp.eye(len(x)), y, assume_a="pos")


@functools.partial(jax.jit, static_argnames=("kernel",))
def _predict(
    kernel: InnerProductKernel,
    support: Float[Array, "m d"],
    alpha: Float[Array, "m c"],
    x: Float[Array, "n d"],
) -> Float[Array, "n c"]:
    return kernel.matrix(x, support) @ alpha
