"""Clipped sums of the gradients of kernel ridge regression on finite features.

The loss of a record is L_l = ½‖r_l‖² with r_l = y_l − Wᵀφ_l (Eq. 3 of DP-KIP-ScatterNet); `Ridge`
has the readout W of the support set and Φ, M and α that make it up. Its gradient can be clipped and
noised with respect to W (`readout.py`), to Φ, or to the points themselves; what follows is
post-processing.

**Features.** With k_l = Φφ_l, u_l = M⁻¹k_l and v_l = α r_l, with respect to Φ it is

    H_l = u_l (Φᵀv_l)ᵀ + v_l (Φᵀu_l − φ_l)ᵀ + 2 (λ/m) ⟨u_l, v_l⟩ Φ  =  A_l Φ − v_l φ_lᵀ

with A_l = u vᵀ + v uᵀ + 2 (λ/m) ⟨u, v⟩ I. Its norm needs K and k_l only, and the clipped sum is
(Σ c_l A_l) Φ − Σ c_l v_l φ_lᵀ: no per-record gradient is built.

**Pixels.** With respect to the coordinates z_i of support point i, where J_i = ∂φ(z_i)/∂z_i
(p × F), it is the i-th row of H_l times J_iᵀ (Eq. 6). The products J_i φ_l of one Jacobian with
all records are a matrix product; the gradients themselves are built.

Everything that touches a record runs in float64, for the reason given in `ridge_points`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.measure.contributions.closed_form import ClosedForm, centred_one_hot
from limbeck.measure.contributions.ridge_points import NORM_ROUNDING
from limbeck.measure.rows import Block
from limbeck.models.ridge import Ridge
from limbeck.privacy.clipping import Clip

BLOCK = 128


class Records(NamedTuple):
    """A piece of a batch, of fixed shape; private. `mask` is false on padding."""

    features: Float[Array, "b f"]  # finite
    y: Float[Array, "b c"]
    mask: Bool[Array, " b"]


@dataclasses.dataclass(frozen=True)
class FeatureGradient(ClosedForm):
    """The sum of clipped gradients with respect to the features of the support points, [m, f].

    Rows hold features in float32.

    **Guarantee.** A record contributes a matrix of Frobenius norm at most `clip.record_norm`,
    rounding included.
    """

    def __call__(self, public: Ridge, block: Block) -> NDArray[np.float64]:
        """The sum over a block, in units of the grid."""
        with jax.enable_x64(True):
            records = _records(block, public.alpha.shape[1])
            return np.asarray(clipped_sum_of_features(self.clip, public, records)) / self.grid


@dataclasses.dataclass(frozen=True)
class PixelGradient(ClosedForm):
    """The sum of clipped gradients with respect to the coordinates of the support points, [m, p].

    Rows hold features in float32; `public` are the ridge solution and the Jacobians.

    **Guarantee.** A record contributes a matrix of Frobenius norm at most `clip.record_norm`,
    rounding included.
    """

    def __call__(
        self, public: tuple[Ridge, Float[Array, "m p f"]], block: Block
    ) -> NDArray[np.float64]:
        """The sum over a block, in units of the grid."""
        with jax.enable_x64(True):
            records = _records(block, public[0].alpha.shape[1])
            return np.asarray(clipped_sum_of_pixels(self.clip, *public, records)) / self.grid


def finite(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The features, with zeros for a record whose features are not all finite."""
    return np.where(np.isfinite(features).all(axis=1, keepdims=True), features, np.float32(0))


def _records(block: Block, classes: int) -> Records:
    y = centred_one_hot(block.labels, classes)
    return Records(jnp.asarray(block.values), jnp.asarray(y), jnp.asarray(block.mask))


def over_blocks(
    of_block: Callable[[Records], Float[Array, "..."]], records: Records, shape: tuple[int, ...]
) -> Float[Array, "..."]:
    """The sum of `of_block` over blocks that stay in the cache in float64."""
    count = len(records.mask)
    size = BLOCK if count % BLOCK == 0 else count
    blocks = Records(*(part.reshape(-1, size, *part.shape[1:]) for part in records))

    def add(total: Float[Array, "..."], block: Records) -> tuple[Float[Array, "..."], None]:
        return total + of_block(block), None

    total, _ = jax.lax.scan(add, jnp.zeros(shape), blocks)
    return total


def wide(records: Records) -> Float[Array, "b f"]:
    """The features, which are kept in float32, in float64."""
    return records.features.astype(jnp.float64)


class _Parts(NamedTuple):
    phi: Float[Array, "b f"]
    k: Float[Array, "b m"]
    u: Float[Array, "b m"]
    v: Float[Array, "b m"]
    d: Float[Array, "b 1"]  # 2 (λ/m) ⟨u, v⟩


def _parts(s: Ridge, records: Records) -> _Parts:
    phi = wide(records)
    k = phi @ s.features.T
    u, v = k @ s.inverse, (records.y - k @ s.alpha) @ s.alpha.T
    return _Parts(phi, k, u, v, 2 * s.ridge * jnp.sum(u * v, axis=1, keepdims=True))


def factors(
    clip: Clip, records: Records, squared: Float[Array, " b"], bound: Float[Array, " b"] | float
) -> Float[Array, "b 1"]:
    """What contributions with these squared norms are multiplied by; nothing for padding.

    `bound` is the squared norm if nothing cancelled, for the margin of rounding.
    """
    norms = jnp.sqrt(jnp.maximum(squared, 0) + NORM_ROUNDING * bound)
    return jnp.where(records.mask, clip.factors(norms), 0)[:, None]


@functools.partial(jax.jit, static_argnames=("clip",))
def clipped_sum_of_features(clip: Clip, s: Ridge, records: Records) -> Float[Array, "m f"]:
    """Σ_l c_l H_l with c_l = clip.factors(‖H_l‖)."""

    def of_block(block: Records) -> Float[Array, "m mf"]:
        """Σ c A and −Σ c v φᵀ, side by side."""
        parts = _parts(s, block)
        c = factors(clip, block, *_squared_norms(s, parts))
        u, v, d = (jnp.where(c > 0, part, 0) for part in (parts.u, parts.v, parts.d))
        a = (c * u).T @ v + v.T @ (c * u) + jnp.sum(c * d) * jnp.eye(len(s.gram))
        return jnp.concatenate([a, -(c * v).T @ parts.phi], axis=1)

    m, size = s.features.shape
    found = over_blocks(of_block, records, (m, m + size))
    return found[:, :m] @ s.features + found[:, m:]


def _squared_norms(s: Ridge, parts: _Parts) -> tuple[Float[Array, " b"], Float[Array, " b"]]:
    """‖H_l‖², and the same if nothing cancelled.

    With K-products written ⟨a, b⟩_K = aᵀKb, the square of A Φ − v φᵀ for A = u vᵀ + v uᵀ + d I is
    ‖AΦ‖² − 2 vᵀA k + ‖v‖²‖φ‖².
    """
    phi, k, u, v, d = parts
    ku, kv, d = u @ s.gram, v @ s.gram, d[:, 0]

    def dot(a: Float[Array, "b m"], b: Float[Array, "b m"]) -> Float[Array, " b"]:
        return jnp.sum(a * b, axis=1)

    uu, vv, uv = dot(u, u), dot(v, v), dot(u, v)
    u_k_u, v_k_v, u_k_v = dot(u, ku), dot(v, kv), dot(u, kv)
    trace, phi_squared = jnp.trace(s.gram), dot(phi, phi)
    a_squared = uu * v_k_v + vv * u_k_u + 2 * uv * u_k_v + 4 * d * u_k_v + d**2 * trace
    cross = uv * dot(v, k) + vv * dot(u, k) + d * dot(v, k)
    squared = a_squared - 2 * cross + vv * phi_squared
    lengths = jnp.sqrt(jnp.diagonal(s.gram))
    u_norm, v_norm = jnp.sqrt(uu), jnp.sqrt(vv)
    bound = (
        u_norm * (jnp.abs(v) @ lengths)
        + v_norm * (jnp.abs(u) @ lengths)
        + jnp.abs(d) * jnp.sqrt(trace)
        + v_norm * jnp.sqrt(phi_squared)
    )
    return squared, bound**2


@functools.partial(jax.jit, static_argnames=("clip",))
def clipped_sum_of_pixels(
    clip: Clip, s: Ridge, jacobians: Float[Array, "m p f"], records: Records
) -> Float[Array, "m p"]:
    """Σ_l c_l G_l with G_l the gradient in coordinates and c_l = clip.factors(‖G_l‖)."""
    phi, _, u, v, d = _parts(s, records)

    def of_point(
        point: tuple[Float[Array, "p f"], Float[Array, " b"], Float[Array, " b"], Array],
    ) -> tuple[Float[Array, "b p"], Float[Array, " b"]]:
        jacobian, u_i, v_i, i = point
        jacobian = jacobian.astype(jnp.float64).T
        of_support, of_records = s.features @ jacobian, phi @ jacobian  # J_i Φᵀ and J_i φ_l
        terms = jnp.stack(
            [
                u_i[:, None] * (v @ of_support),
                v_i[:, None] * (u @ of_support),
                -v_i[:, None] * of_records,
                d * of_support[i],
            ]
        )
        return jnp.sum(terms, axis=0), jnp.sum(terms**2, axis=(0, 2))

    gradients, bounds = jax.lax.map(of_point, (jacobians, u.T, v.T, jnp.arange(len(s.gram))))
    c = factors(clip, records, jnp.sum(gradients**2, axis=(0, 2)), 4 * jnp.sum(bounds, axis=0))
    return jnp.einsum("b,mbp->mp", c[:, 0], jnp.where(c > 0, gradients, 0))
