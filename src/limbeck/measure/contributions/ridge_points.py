"""Clipped sums of the gradients of kernel ridge regression, in closed form.

For a support set (X_s, Y_s) and a kernel k let

    M = K_ss + λ tr(K_ss)/m · I,   α = M⁻¹ Y_s,                          (public)
    k_l = k(x_l, X_s),  r_l = y_l − αᵀk_l,  u_l = M⁻¹k_l,  v_l = α r_l    (one record)

The loss of one record (Eq. 3 of DP-KIP-ScatterNet) is L_l = ½‖r_l‖², and

    dL_l = Σ_ij u_i v_j dM_ij − Σ_j v_j dk(x_l, s_j).

For a kernel of inner products the gradient with respect to the support points (Eq. 6) is

    G_l = A_l X_s + b_l x_lᵀ,    A_l = Q ∘ (u vᵀ + v uᵀ) + diag(d_l),    b_l = −v ∘ ∂k_l/∂⟨x, s⟩

with Q = ∂K_ss/∂⟨·,·⟩ off the diagonal. Its norm needs Gram matrices only, and the clipped sum is
(Σ c_l A_l) X_s + Σ c_l b_l x_lᵀ: no per-record gradient is ever built.

The points may be given in any orthonormal coordinates of a subspace; the gradient is then the one
with respect to these coordinates.

Everything runs in float64. A record that comes or goes shifts the others to other places of a
sum, which rounds differently then; in float32, over many records whose terms nearly cancel, that
alone can move the sum by more than one record may.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.batching import in_blocks
from limbeck.features.base import InnerProductKernel
from limbeck.features.inputs import Inputs
from limbeck.measure.contributions.closed_form import ClosedForm, centred_one_hot
from limbeck.measure.rows import Block
from limbeck.privacy.clipping import Clip

# What the rounding of a squared norm is at most, relative to the bound of `_squared_bound`. It is
# added before clipping, so that no contribution is larger than it claims even where all but a
# small part of its terms cancel.
NORM_ROUNDING = 1e-9


class Support(NamedTuple):
    """All that a step needs of the support set; public."""

    x: Float[Array, "m d"]
    norms: Float[Array, " m"]
    gram: Float[Array, "m m"]
    inverse: Float[Array, "m m"]  # M⁻¹
    alpha: Float[Array, "m c"]
    by_dot: Float[Array, "m m"]  # Q, zero on the diagonal
    by_norm: Float[Array, "m m"]  # ∂K_ij/∂‖s_i‖², zero on the diagonal
    slope: Float[Array, " m"]  # dK_ii/d‖s_i‖²
    ridge: Float[Array, ""]  # λ/m


class LowRank(NamedTuple):
    """Products for ‖A_l X_s‖² that use that v_l = α r_l has rank c; public."""

    cross: Float[Array, "c m m"]  # Q_ik (Q diag(α_p) G)_ik
    left: Float[Array, "m c c"]  # Σ_jk Q_ij α_jp G_jk α_kq Q_ik
    right: Float[Array, "c2 m m"]  # G ∘ (Q diag(α_p α_q) Q), p ≤ q, twice off p = q


class Records(NamedTuple):
    """A block of records, of fixed shape; private. `mask` is false on padding."""

    x: Float[Array, "b d"]
    norms: Float[Array, " b"]  # squared norms of the whole records, inside the subspace and out
    y: Float[Array, "b c"]
    mask: Bool[Array, " b"]


@dataclasses.dataclass(frozen=True)
class PointGradient(ClosedForm):
    """The sum of clipped gradients with respect to the support points, [m, d].

    Rows hold the coordinates of a record in the subspace of the support points and, last, its
    squared norm.

    **Guarantee.** A record contributes a matrix of Frobenius norm at most `clip.record_norm`,
    rounding included.
    """

    kernel: InnerProductKernel

    def __call__(self, public: tuple[Support, LowRank | None], block: Block) -> NDArray[np.float64]:
        """The sum over a block, in units of the grid."""
        classes = public[0].alpha.shape[1]
        with jax.enable_x64(True):
            records = Records(
                jnp.asarray(block.values[:, :-1]),
                jnp.asarray(block.values[:, -1]),
                jnp.asarray(centred_one_hot(block.labels, classes)),
                jnp.asarray(block.mask),
            )
            return np.asarray(clipped_sum(self.kernel, self.clip, *public, records)) / self.grid


def coordinates(inputs: Inputs, values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Records as `PointGradient` takes them.

    One record at a time is multiplied with the basis, so that its coordinates do not depend on
    its place among others.
    """
    seen = inputs.from_records(values.astype(np.float64))
    basis = np.asarray(inputs.basis, np.float64)
    products = in_blocks(lambda block: np.stack([row @ basis for row in block]), 256, seen)
    return np.concatenate([products, np.sum(seen**2, axis=1, keepdims=True)], axis=1)


def prepare(
    kernel: InnerProductKernel,
    points: NDArray[np.floating],
    labels: NDArray[np.float64],
    regularisation: float,
) -> tuple[Support, LowRank | None]:
    """The ridge solution on the support set in float64, and what else needs no records."""
    m, c = labels.shape
    with jax.enable_x64(True):
        x, y = jnp.asarray(points, jnp.float64), jnp.asarray(labels, jnp.float64)
        support = _support(kernel, x, y, regularisation)
        return support, _low_rank(support) if m > c * (c + 1) // 2 else None


@functools.partial(jax.jit, static_argnames=("kernel",))
def _support(
    kernel: InnerProductKernel,
    x: Float[Array, "m d"],
    y: Float[Array, "m c"],
    regularisation: Float[Array, ""],
) -> Support:
    m = len(x)
    norms, gram = jnp.sum(x**2, axis=1), x @ x.T
    off = ~jnp.eye(m, dtype=bool)
    partials = kernel.partials(gram, norms, norms)
    diagonal, slope = jax.vmap(jax.value_and_grad(kernel.diagonal))(norms)
    k = jnp.where(off, partials.k, diagonal[:, None])
    inverse = jnp.linalg.inv(k + regularisation * jnp.trace(k) / m * jnp.eye(m))
    return Support(
        x=x,
        norms=norms,
        gram=gram,
        inverse=(inverse + inverse.T) / 2,
        alpha=inverse @ y,
        by_dot=jnp.where(off, partials.by_dot, 0),
        by_norm=jnp.where(off, partials.by_norm_s.T, 0),
        slope=slope,
        ridge=jnp.asarray(regularisation / m),
    )


@jax.jit
def _low_rank(s: Support) -> LowRank:
    q, alpha = s.by_dot, s.alpha
    cross = q * jnp.stack([(q * column) @ s.gram for column in alpha.T])
    p, t = jnp.triu_indices(alpha.shape[1])
    pairs = jnp.where(p == t, 1, 2) * alpha[:, p] * alpha[:, t]
    right = jax.lax.map(lambda weights: s.gram * ((q * weights) @ q), pairs.T)
    return LowRank(cross, jnp.einsum("pik,kq->ipq", cross, alpha), right)


@functools.partial(jax.jit, static_argnames=("kernel", "clip"))
def clipped_sum(
    kernel: InnerProductKernel,
    clip: Clip,
    support: Support,
    low_rank: LowRank | None,
    records: Records,
) -> Float[Array, "m d"]:
    """Σ_l c_l G_l with c_l = clip.factors(‖G_l‖).

    **Guarantee.** Each record that is not padding contributes a matrix of Frobenius norm at most
    `clip.record_norm`, rounding included.
    """
    s, parts = support, _per_record(kernel, support, low_rank, records)
    norms = jnp.sqrt(jnp.maximum(parts.squared, 0) + NORM_ROUNDING * parts.bound)
    c = jnp.where(records.mask, clip.factors(norms), 0)[:, None]
    # 0 · inf is NaN, so excluded records are masked with `where` instead of multiplied by zero.
    u, v, d, b = (jnp.where(c > 0, part, 0) for part in (parts.u, parts.v, parts.d, parts.b))
    a = s.by_dot * ((c * u).T @ v + v.T @ (c * u))
    return a @ s.x + jnp.sum(c * d, axis=0)[:, None] * s.x + (c * b).T @ records.x


class _Parts(NamedTuple):
    """u, v, d and b of every record; the squared norm of its gradient, and a bound of that."""

    u: Float[Array, "b m"]
    v: Float[Array, "b m"]
    d: Float[Array, "b m"]
    b: Float[Array, "b m"]
    squared: Float[Array, " b"]
    bound: Float[Array, " b"]


def _per_record(
    kernel: InnerProductKernel, s: Support, low_rank: LowRank | None, records: Records
) -> _Parts:
    dots = records.x @ s.x.T
    partials = kernel.partials(dots, records.norms, s.norms)
    r = records.y - partials.k @ s.alpha
    u = partials.k @ s.inverse
    v = r @ s.alpha.T
    trace_part = s.ridge * jnp.sum(u * v, axis=1, keepdims=True)
    d = 2 * (
        u * (v @ s.by_norm.T)
        + v * (u @ s.by_norm.T)
        + s.slope * (u * v + trace_part)
        - v * partials.by_norm_s
    )
    b = -v * partials.by_dot

    a_dots = u * ((v * dots) @ s.by_dot) + v * ((u * dots) @ s.by_dot) + d * dots  # A_l X_s x_l
    x_squared = jnp.sum(records.x**2, axis=1)
    if low_rank is None:
        a_squared = _a_squared(s, u, v, d)
    else:
        a_squared = _a_squared_low_rank(s, low_rank, r, u, v, d)
    squared = a_squared + 2 * jnp.sum(b * a_dots, axis=1) + jnp.sum(b**2, axis=1) * x_squared
    return _Parts(u, v, d, b, squared, _squared_bound(s, r, u, d, b, x_squared))


def _a_squared(
    s: Support, u: Float[Array, "b m"], v: Float[Array, "b m"], d: Float[Array, "b m"]
) -> Float[Array, " b"]:
    """‖A_l X_s‖² = tr(A_l G A_lᵀ), as it stands: O(b m³)."""
    a = s.by_dot * (u[:, :, None] * v[:, None, :] + v[:, :, None] * u[:, None, :])
    a = a + d[:, :, None] * jnp.eye(d.shape[1], dtype=d.dtype)
    return jnp.sum(a * (a @ s.gram), axis=(1, 2))


def _a_squared_low_rank(
    s: Support,
    low_rank: LowRank,
    r: Float[Array, "b c"],
    u: Float[Array, "b m"],
    v: Float[Array, "b m"],
    d: Float[Array, "b m"],
) -> Float[Array, " b"]:
    """‖A_l X_s‖² with v = α r multiplied out: O(c² b m²).

    With A = D_u Q D_v + D_v Q D_u + D_d the square has these six terms, two of them equal.
    """
    r_pairs = r[:, :, None] * r[:, None, :]
    left = jnp.sum(jnp.einsum("bi,ipq->bpq", u**2, low_rank.left) * r_pairs, axis=(1, 2))
    weighted = jnp.einsum("bp,pbi->bi", r, u @ low_rank.cross.transpose(0, 2, 1))
    cross = jnp.sum(weighted * u * v, axis=1)
    p, q = jnp.triu_indices(r.shape[1])

    def add_pair(
        total: Float[Array, " b"], pair: tuple[Array, Array]
    ) -> tuple[Float[Array, " b"], None]:
        matrix, weights = pair
        return total + weights * jnp.sum((u @ matrix) * u, axis=1), None

    right, _ = jax.lax.scan(add_pair, jnp.zeros_like(left), (low_rank.right, r_pairs[:, p, q].T))
    q_gram = s.by_dot * s.gram
    with_diagonal = jnp.sum(d * (u * (v @ q_gram) + v * (u @ q_gram)), axis=1)
    return left + right + 2 * cross + 2 * with_diagonal + d**2 @ s.norms


def _squared_bound(
    s: Support,
    r: Float[Array, "b c"],
    u: Float[Array, "b m"],
    d: Float[Array, "b m"],
    b: Float[Array, "b m"],
    x_squared: Float[Array, " b"],
) -> Float[Array, " b"]:
    """‖G_l‖² if nothing cancelled: the sum of the absolute values of all that is added."""
    lengths, q = jnp.sqrt(s.norms), jnp.abs(s.by_dot)
    u, v = jnp.abs(u), jnp.abs(r) @ jnp.abs(s.alpha).T
    rows = (
        u * ((v * lengths) @ q)
        + v * ((u * lengths) @ q)
        + jnp.abs(d) * lengths
        + jnp.abs(b) * jnp.sqrt(x_squared)[:, None]
    )
    return jnp.sum(rows**2, axis=1)
