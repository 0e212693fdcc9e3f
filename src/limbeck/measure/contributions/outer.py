"""Outer products φ rᵀ of integers: exact sums at the speed of a matrix product.

Features φ of norm at most one are kept as whole numbers of 1/`FEATURE`, rounded towards zero. The
residual r of a record is scaled, clipped to C/‖φ‖ and rounded towards zero to whole numbers of
C/`RESIDUAL`. Products and partial sums of a block then stay below 2⁵³ in absolute value, so that a
float64 matrix product adds them up without rounding, in any order.

Predictions φᵀW are exact too, because W is rounded to integers that are small enough: what is
computed of a record does not depend on its place in a block.
"""

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.clipping import Clip

Floats = NDArray[np.float64]

FEATURE = 2**15 - 1
RESIDUAL = 2**15
# The norm of a column of integer weights: FEATURE times that is below 2⁵².
WEIGHT = 2.0**36
# Rounding makes feature vectors shorter; none of unit norm becomes shorter than this.
SHORTEST = 0.5

# An outer product in units of 1/FEATURE · C/RESIDUAL.
BOUND = FEATURE * RESIDUAL


def codes(features: NDArray[np.floating]) -> NDArray[np.int16]:
    """Features of norm at most one as integers; a row that is not finite, or longer, is zero.

    Examples
    --------
    >>> codes(np.array([[0.6, -0.8], [np.nan, 0.0]])).tolist()
    [[19660, -26213], [0, 0]]
    """
    finite = np.isfinite(features).all(axis=1, keepdims=True)
    rounded = np.trunc(np.where(finite, features, 0).astype(np.float64) * FEATURE)
    fits = np.sum(rounded**2, axis=1, keepdims=True) <= FEATURE**2
    return np.where(fits, rounded, 0).astype(np.int16)


def predictions(phi: Floats, weights: Floats) -> Floats:
    """φᵀW for integer features `phi`, without rounding, for W rounded to a grid of its own.

    The grid is about 2⁻³⁶ of the longest column of W.
    """
    longest = float(np.max(np.linalg.norm(weights, axis=0), initial=0.0))
    if not (np.isfinite(longest) and longest > 0):
        return np.zeros((len(phi), weights.shape[1]))
    scale = WEIGHT / longest
    return np.asarray(phi @ np.trunc(weights * scale)) / (scale * FEATURE)


def outer_sum(phi: Floats, residuals: Floats, weights: Floats, clip: Clip) -> Floats:
    """Σ w_l c_l φ_l r_lᵀ as integers, c_l being what scales ‖φ_l‖‖r_l‖ to the clip.

    **Guarantee.** Each record contributes integers of Frobenius norm at most `BOUND`, by a
    comparison of integers; one that would exceed it, or is not finite, contributes nothing. The
    weights are at most one, and zero on padding.
    """
    norms = np.sqrt(np.sum(phi**2, axis=1)) / FEATURE
    lengths = np.maximum(norms, SHORTEST) * np.linalg.norm(residuals, axis=1)
    bound = 1.0 if clip.bound is None else clip.bound
    factors = weights * np.asarray(clip.factors_of(lengths))
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.trunc(residuals * (factors * (RESIDUAL / bound))[:, None])
    fits = _fits(phi, scaled)
    return np.asarray(phi.T @ np.where(fits[:, None], scaled, 0))


def _fits(phi: Floats, scaled: Floats) -> NDArray[np.bool_]:
    """Whether ‖φ‖²‖r‖² ≤ BOUND², for integers, in integers."""
    small = np.all(np.abs(scaled) <= 2 * RESIDUAL, axis=1)  # false for what is no number
    r_squared = np.sum(np.where(small[:, None], scaled, 0) ** 2, axis=1)
    small &= r_squared <= 4 * RESIDUAL**2
    phi_squared = np.sum(phi**2, axis=1)
    small &= phi_squared <= FEATURE**2
    product = phi_squared.astype(np.int64) * np.where(small, r_squared, 0).astype(np.int64)
    return small & (product <= BOUND**2)
