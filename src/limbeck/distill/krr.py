"""Kernel ridge regression on a support set: how a distilled set is used.

α = (K_ss + λ tr(K_ss)/m · I)⁻¹ Y_s,      f(x) = k(x, X_s) α          (Eq. 3)
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.features.base import InnerProductKernel
from limbeck.features.inputs import Inputs

PIECE = 1024


class KernelRidge:
    """The predictor of a support set.

    Arguments are in the units of the encoding, [0, 1] for records: `x` the support points and `y`
    their labels, one weight a class. `scores` are regression values, not probabilities; the
    largest names the class.
    """

    def __init__(
        self,
        kernel: InnerProductKernel,
        inputs: Inputs,
        x: NDArray[np.floating],
        y: NDArray[np.floating],
        regularisation: float,
    ) -> None:
        self.kernel = kernel
        self.inputs = inputs
        self.support = np.asarray(inputs.from_support(x), np.float32)
        with jax.enable_x64(True):
            alpha = _solve(
                kernel, jnp.asarray(self.support, jnp.float64), jnp.asarray(y), regularisation
            )
        self.alpha = np.asarray(alpha, np.float32)

    def scores(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        """One regression value a class for each encoded record."""
        found = [self._piece(x[start : start + PIECE]) for start in range(0, max(len(x), 1), PIECE)]
        return np.concatenate(found)

    def _piece(self, x: NDArray[np.floating]) -> NDArray[np.float32]:
        padded = np.zeros((PIECE, x.shape[1]), np.float32)
        padded[: len(x)] = self.inputs.from_records(x)
        return np.asarray(_predict(self.kernel, self.support, self.alpha, padded))[: len(x)]


@functools.partial(jax.jit, static_argnames=("kernel",))
def _solve(
    kernel: InnerProductKernel,
    x: Float[Array, "m d"],
    y: Float[Array, "m c"],
    regularisation: float,
) -> Float[Array, "m c"]:
    k = kernel.symmetric(x)
    ridge = regularisation * jnp.trace(k) / len(x)
    return jax.scipy.linalg.solve(k + ridge * jnp.eye(len(x)), y, assume_a="pos")


@functools.partial(jax.jit, static_argnames=("kernel",))
def _predict(
    kernel: InnerProductKernel,
    support: Float[Array, "m d"],
    alpha: Float[Array, "m c"],
    x: Float[Array, "n d"],
) -> Float[Array, "n c"]:
    return kernel.matrix(x, support) @ alpha
