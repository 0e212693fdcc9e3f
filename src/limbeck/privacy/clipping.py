"""Scaling contributions down to a bound."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

# Sums in closed form are computed in float64. The bound that noise is scaled to is larger than the
# one that is clipped to, by far more than the rounding of all records together.
ROUNDING = 1e-3

# Squares of shorter norms leave the range of float64.
SHORTEST = 1e-100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Clip:
    """Scale contributions down to norm `bound`; or, with `bound` None, all to norm one.

    Normalised contributions need no constant to tune: with Adam the scale of a gradient cancels,
    and the papers' constants of 1e-6 clip every record anyway.
    """

    bound: float | None = None

    @property
    def record_norm(self) -> float:
        """The norm that noise must be scaled to."""
        return (1.0 if self.bound is None else self.bound) * (1 + ROUNDING)

    def factors(self, norms: Float[Array, " b"]) -> Float[Array, " b"]:
        """What to multiply each contribution by.

        A contribution whose norm cannot be trusted (infinite, not a number, or so short that its
        square underflows) is left out.

        Examples
        --------
        >>> Clip(bound=1.0).factors(jnp.array([0.5, 4.0])).tolist()
        [1.0, 0.25]
        """
        return self._factors(jnp, norms)

    def factors_of(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for NumPy."""
        with np.errstate(over="ignore"):
            return np.asarray(self._factors(np, norms))

    def _factors(self, xp: Any, norms: Any) -> Any:
        measurable = (norms > SHORTEST) & xp.isfinite(norms)
        safe = xp.where(measurable, norms, 1)
        if self.bound is None:
            return xp.where(measurable, 1 / safe, 0)
        return xp.where(xp.isfinite(norms), xp.minimum(1, self.bound / safe), 0)
