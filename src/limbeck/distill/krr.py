"""Kernel ridge regression on a support set: how a distilled set is used.

α = (K_ss + λ tr(K_ss)/m · I)⁻¹ Y_s,      f(x) = k(x, X_s) α          (Eq. 3)

On finite features that is a linear readout, and the points are not needed to predict.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.features import ridge
from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.features.inputs import Inputs
from limbeck.features.kernels import Kernel

PIECE = 1024


class KernelRidge:
    """The predictor of a support set.

    Arguments are in the units of the encoding, [0, 1] for records: `x` the support points and `y`
    their labels, one weight a class. `scores` are regression values, not probabilities; the
    largest names the class.
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
                solution = ridge.solve(features, labels, regularisation)
                self.alpha = np.asarray(solution.alpha, np.float32)
                self.readout = np.asarray(solution.readout, np.float32)
            else:
                self.alpha = np.asarray(_solve(kernel, points, labels, regularisation), np.float32)

    def scores(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        """One regression value a class for each encoded record."""
        found = [self._piece(x[start : start + PIECE]) for start in range(0, max(len(x), 1), PIECE)]
        return np.concatenate(found)

    def _piece(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        inputs = np.asarray(self.inputs.from_records(x), np.float32)
        if isinstance(self.kernel, FeatureMap):
            return features_of(self.kernel, inputs) @ self.readout
        padded = np.zeros((PIECE, x.shape[1]), np.float32)
        padded[: len(x)] = inputs
        return np.asarray(_predict(self.kernel, self.support, self.alpha, padded))[: len(x)]


@functools.partial(jax.jit, static_argnames=("kernel",))
def _solve(
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
