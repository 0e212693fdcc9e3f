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
left to scale to unit norm.

References
----------
Vinaroz, Charusaie, Harder, Adamczewski & Park 2022 (DP-HP); Mehler 1866; Indritz 1961 for
the bound on H_c.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, Weigh, unit_norm

# Half of the exponential, exp(−(2C + 1)/4), is a number of float32 up to here.
MOST_ORDER = 150


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
        functions, products = self._parts(x)
        of_sum = jnp.moveaxis(functions, 0, 2).reshape(len(x), -1)
        return unit_norm(jnp.concatenate([of_sum, products], axis=1))

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Without the features of any record laid out one after the other."""
        functions, products = self._parts(x)
        squares = jnp.sum(functions**2, axis=(0, 2)) + jnp.sum(products**2, axis=1)
        inverse = jax.lax.rsqrt(squares)  # some function is large, wherever a coordinate is
        w = inverse * weigh(jnp.sqrt(squares) * inverse)
        of_sum = jnp.sum(w[:, None] * functions, axis=1)
        return jnp.concatenate([of_sum.T.ravel(), w @ products])

    def _parts(self, x: Float[Array, "n d"]) -> tuple[Float[Array, "c n d"], Float[Array, "n p"]]:
        """Of the sum kernel by order, and of the product kernel."""
        functions = _functions(self.scale * x, self.rho, self._highest)
        of_sum = functions[: self.order + 1] / math.sqrt(self.dimension)
        if not self.subset:
            return of_sum, jnp.zeros((len(x), 0), x.dtype)
        few = functions[: self.order_product + 1, :, self._coordinates]
        return of_sum, functools.reduce(_products, few.transpose(2, 1, 0))

    @property
    def _highest(self) -> int:
        return max(self.order, self.order_product) if self.subset else self.order

    @functools.cached_property
    def _coordinates(self) -> NDArray[np.int32]:
        """The subset, in a random order."""
        with jax.ensure_compile_time_eval():
            drawn = jax.random.permutation(jax.random.key(self.seed), self.dimension)
            return np.asarray(drawn[: self.subset], np.int32)


def _functions(x: Float[Array, "n d"], rho: float, order: int) -> Float[Array, "c n d"]:
    """φ_0, ..., φ_order of every coordinate."""
    reach = math.sqrt(2 * order + 1)
    return _recursion(rho, order, jnp.clip(x, -reach, reach))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _recursion(rho: float, order: int, x: Float[Array, "n d"]) -> Float[Array, "c n d"]:
    half = jnp.exp(-rho / (1 + rho) / 2 * x**2)
    c = np.arange(order)
    ups, downs = np.sqrt(2 * rho / (c + 1)), rho * np.sqrt(c / (c + 1))

    def step(
        last: tuple[Float[Array, "n d"], Float[Array, "n d"]],
        weights: tuple[Float[Array, ""], Float[Array, ""]],
    ) -> tuple[tuple[Float[Array, "n d"], Float[Array, "n d"]], Float[Array, "n d"]]:
        (before, now), (up, down) = last, weights
        after = up * x * now - down * before
        return (now, after), after * half

    first = (1 - rho**2) ** 0.25 * half
    weights = jnp.asarray(ups, x.dtype), jnp.asarray(downs, x.dtype)
    _, others = jax.lax.scan(step, (jnp.zeros_like(first), first), weights)
    return jnp.concatenate([(first * half)[None], others])


@_recursion.defjvp
def _recursion_jvp(
    rho: float,
    order: int,
    primals: tuple[Float[Array, "n d"]],
    tangents: tuple[Float[Array, "n d"]],
) -> tuple[Float[Array, "c n d"], Float[Array, "c n d"]]:
    """φ_c' = √(2ρc) φ_{c−1} − 2ρ/(1 + ρ) x φ_c, for H_c' = 2c H_{c−1}: no recursion backwards."""
    (x,), (dx,) = primals, tangents
    functions = _recursion(rho, order, x)
    rises = jnp.asarray(np.sqrt(2 * rho * np.arange(1, order + 1)), x.dtype)[:, None, None]
    below = jnp.concatenate([jnp.zeros_like(functions[:1]), rises * functions[:-1]])
    return functions, (below - 2 * rho / (1 + rho) * x * functions) * dx


def _products(a: Float[Array, "n p"], b: Float[Array, "n q"]) -> Float[Array, "n pq"]:
    """All products of a feature of `a` and one of `b`."""
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
