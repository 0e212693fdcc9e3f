"""Hermite features: the Gaussian kernel as a sum that can be cut off, after Mehler.

In one dimension, with 0 < ρ < 1 and the physicists' Hermite polynomials H_c,

    k(x, y) = exp(−ρ/(1 − ρ²) (x − y)²) = Σ_c φ_c(x) φ_c(y),
    φ_c(x) = √λ_c f_c(x) = (1 − ρ²)^¼ √(ρ^c / (2^c c!)) H_c(x) exp(−ρ/(1 + ρ) x²),

where λ_c = (1 − ρ)ρ^c, f_c = H_c(x) exp(−ρ/(1 + ρ) x²) / √N_c, N_c = 2^c c! √((1 − ρ)/(1 + ρ)).
Cut off after order C, the sum is off by at most

    √((1 + ρ)/(1 − ρ)) ρ^(C+1) exp((1 − ρ)/(1 + ρ) (x² + y²)/2)

because |H_c(x)| ≤ √(2^c c!) exp(x²/2). Of D coordinates there are two kernels, the mean of k over
all of them and the product of k over a few, and φ has both:

    φ_sum(x) = [φ_c(x_d)]_{c ≤ C, d ≤ D} / √D           φ_prod(x) = ⊗_{d in subset} [φ_c(x_d)]_c
    φ(x) = [φ_sum(x), φ_prod(x)], scaled to unit norm

The squares of either sum to nearly one, so both count alike.

**How it is computed.** Nothing is as large as H_c or c!. From H_{c+1} = 2x H_c − 2c H_{c−1} follows

    φ_{c+1} = √(2ρ/(c + 1)) x φ_c − ρ √(c/(c + 1)) φ_{c−1},

which is stable: with c, functions grow up to c = (x² − 1)/2 and oscillate from there, but do not
decay. They may grow from a φ_0 that is smaller than any number of float32, so half of the
exponential is applied after the recursion. Coordinates beyond √(2C + 1) are taken to be there:
farther out all functions decay, the sum is none of the kernel any more, and soon there is nothing
left to scale to unit norm. Sums over records, and their derivatives, take up one order after the
other, and functions of all orders are never there at once.

References
----------
Vinaroz, Charusaie, Harder, Adamczewski & Park 2022 (DP-HP); Mehler 1866; Indritz 1961 for
the bound on H_c.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, Weigh, unit_norm

# Half of the exponential, exp(−(2C + 1)/4), is a number of float32 up to here.
MOST_ORDER = 150

# State, φ_c, φ_c' and what is given for c, to the next state and what is kept of c.
Visit = Callable[[Any, Array, Array, Any], tuple[Any, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hermite(FeatureMap):
    """Hermite functions of records of `dimension` coordinates in [0, 1], or [−1, 1].

    Coordinates are multiplied with `scale` first: the length scale of the kernel of a coordinate,
    ℓ in exp(−(x − y)² / 2ℓ²), is √((1 − ρ²)/2ρ) / scale, by default 0.22, and the sum is then cut
    off within 2e-5. The product kernel is that of `subset` coordinates drawn from `seed`, with
    functions up to `order_product`; there is none where `subset` is 0.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> features = Hermite(dimension=64)
    >>> features(jnp.ones((3, 64))).shape  # 64 · 21 + 21²
    (3, 1785)
    """

    dimension: int
    order: int = 20
    rho: float = 0.5
    scale: float = 4.0
    subset: int = 2
    order_product: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rho < 1:
            raise UserError(f"rho must be between 0 and 1, not {self.rho}")
        if not 0 <= self.subset <= self.dimension:
            raise UserError(f"subset must be from 0 to the {self.dimension} coordinates there are")
        if not 0 <= min(self.order, self.order_product) <= self._highest <= MOST_ORDER:
            raise UserError(f"orders of Hermite functions go from 0 to {MOST_ORDER}")

    @property
    def size(self) -> int:
        """The functions of every coordinate, and all products of those of the subset."""
        products = (self.order_product + 1) ** self.subset if self.subset else 0
        return self.dimension * (self.order + 1) + products

    @property
    def batch(self) -> int:
        """They are many, but cheap."""
        return 64

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """The sum kernel's, coordinate by coordinate, then the product kernel's."""
        functions = _functions(self.rho, self.order, self._reached(x)) / math.sqrt(self.dimension)
        of_sum = jnp.moveaxis(functions, 0, 2).reshape(len(x), -1)
        return unit_norm(jnp.concatenate([of_sum, self._products(x)], axis=1))

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Order by order: the functions of all orders are never there at once."""
        scaled, products = self._reached(x), self._products(x)
        squares = _squares(self.rho, self.order, scaled) / self.dimension
        squares += jnp.sum(products**2, axis=1)
        inverse = jax.lax.rsqrt(squares)  # some function is large, wherever a coordinate is
        w = inverse * weigh(jnp.sqrt(squares) * inverse)
        of_sum = _sums(self.rho, self.order, scaled, w / math.sqrt(self.dimension))
        return jnp.concatenate([of_sum.T.ravel(), w @ products])

    def _products(self, x: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """The features of the product kernel."""
        if not self.subset:
            return jnp.zeros((len(x), 0), x.dtype)
        few = _functions(self.rho, self.order_product, self._reached(x[:, self._coordinates]))
        return functools.reduce(_all_products, few.transpose(2, 1, 0))

    def _reached(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Scaled, within the reach of the functions."""
        return _within(self.scale * x, self._highest)

    @property
    def _highest(self) -> int:
        return max(self.order, self.order_product) if self.subset else self.order

    @functools.cached_property
    def _coordinates(self) -> NDArray[np.int32]:
        """The subset, in a random order."""
        with jax.ensure_compile_time_eval():
            drawn = jax.random.permutation(jax.random.key(self.seed), self.dimension)
            return np.asarray(drawn[: self.subset], np.int32)


def _within(x: Float[Array, "n d"], order: int) -> Float[Array, "n d"]:
    """Coordinates farther out than functions up to `order` reach, where these end."""
    reach = math.sqrt(2 * order + 1)
    return jnp.clip(x, -reach, reach)


def _in_turn(
    rho: float, order: int, x: Float[Array, "n d"], visit: Visit, start: Any, given: Any = None
) -> tuple[Any, Any]:
    """What `visit` makes of φ_c and φ_c' of every coordinate, one order c after the other.

    It has the state that it left, and the c-th of what is `given`; it returns its next state, and
    what is to be kept of this order. The slope has no recursion of its own: H_c' = 2c H_{c−1}, so
    φ_c' = √(2ρc) φ_{c−1} − 2ρ/(1 + ρ) x φ_c.
    """
    half = jnp.exp(-rho / (1 + rho) / 2 * x**2)
    c = np.arange(order + 1)
    weights = np.sqrt(2 * rho / (c + 1)), rho * np.sqrt(c / (c + 1)), np.sqrt(2 * rho * c)

    def step(last: tuple[Array, Array, Any], at: tuple[Array, Array, Array, Any]) -> Any:
        (before, now, state), (up, down, rise, its) = last, at
        slope = rise * before - 2 * rho / (1 + rho) * x * now
        state, kept = visit(state, now * half, slope * half, its)
        return (now, up * x * now - down * before, state), kept

    first = (1 - rho**2) ** 0.25 * half
    over = *(jnp.asarray(w, x.dtype) for w in weights), given
    begun = jnp.zeros_like(first), first, start
    # Three orders in a pass: the compiler shares out among the cores what is large enough.
    (_, _, state), kept = jax.lax.scan(step, begun, over, unroll=3)
    return state, kept


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _functions(rho: float, order: int, x: Float[Array, "n d"]) -> Float[Array, "c n d"]:
    """φ_0, ..., φ_order of every coordinate."""
    return jnp.asarray(_in_turn(rho, order, x, lambda _, phi, slope, its: (None, phi), None)[1])


@_functions.defjvp
def _functions_jvp(
    rho: float,
    order: int,
    primals: tuple[Float[Array, "n d"]],
    tangents: tuple[Float[Array, "n d"]],
) -> tuple[Float[Array, "c n d"], Float[Array, "c n d"]]:
    (x,), (dx,) = primals, tangents
    _, both = _in_turn(rho, order, x, lambda _, phi, slope, its: (None, (phi, slope)), None)
    functions, slopes = both
    return functions, slopes * dx


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _sums(
    rho: float, order: int, x: Float[Array, "n d"], w: Float[Array, " n"]
) -> Float[Array, "c d"]:
    """Σ_l w_l φ_c(x_l) of every order and coordinate."""
    _, sums = _in_turn(rho, order, x, lambda _, phi, slope, its: (None, w @ phi), None)
    return jnp.asarray(sums)


def _sums_back(
    rho: float, order: int, at: tuple[Array, Array], d: Float[Array, "c d"]
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    x, w = at

    def visit(state: tuple[Array, Array], phi: Array, slope: Array, its: Array) -> Any:
        return (state[0] + its * slope, state[1] + its * phi), None

    start = jnp.zeros_like(x), jnp.zeros_like(x)
    (slopes, values), _ = _in_turn(rho, order, x, visit, start, d)
    return w[:, None] * slopes, jnp.sum(values, axis=1)


_sums.defvjp(lambda rho, order, x, w: (_sums(rho, order, x, w), (x, w)), _sums_back)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _squares(rho: float, order: int, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Σ φ_c(x_d)² over all orders and coordinates."""
    visit: Visit = lambda state, phi, slope, its: (state + phi**2, None)  # noqa: E731
    return jnp.sum(_in_turn(rho, order, x, visit, jnp.zeros_like(x))[0], axis=1)


def _squares_back(
    rho: float, order: int, x: Float[Array, "n d"], d: Float[Array, " n"]
) -> tuple[Float[Array, "n d"]]:
    visit: Visit = lambda state, phi, slope, its: (state + phi * slope, None)  # noqa: E731
    found, _ = _in_turn(rho, order, x, visit, jnp.zeros_like(x))
    return (2 * d[:, None] * found,)


_squares.defvjp(lambda rho, order, x: (_squares(rho, order, x), x), _squares_back)


def _all_products(a: Float[Array, "n p"], b: Float[Array, "n q"]) -> Float[Array, "n pq"]:
    """All products of a feature of `a` and one of `b`."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
