"""One noisy sum of features for each class: all that a moment-matching generator learns from.

    S_c = Σ_{l: y_l = c} φ(x_l) / ‖φ(x_l)‖          (Eq. 4 of DP-NTK, without the division by m)

A record is in one class and adds a vector of norm one there, so the matrix S moves by at most one
when a record comes or goes, and by at most two when one is replaced (Proposition 3.1, times m). The
papers divide by the number of records, which is private; here it is measured, with noise.
"""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.features.base import FeatureMap
from limbeck.features.places import BINS, Places, bins_of
from limbeck.measure.records import revealed
from limbeck.privacy import clipping, noise, sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

EMBEDDING = "class-wise sums of features"
COUNTS = "class counts"
HISTOGRAMS = "column histograms"

# Taken up in pieces of this many: one compiled shape, bounded memory.
AT_A_TIME = 512
CLIP = Clip(bound=None)


class Moments(Unique):
    """Noisy sums and counts, one a class."""

    def __init__(self, sums: Floats, counts: Floats) -> None:
        self.sums, self.counts = sums, counts


def histograms(
    private: Described,
    columns: Sequence[int],
    edges: Sequence[Sequence[float]],
    *,
    ledger: Ledger,
    entropy: Entropy,
    progress: Progress = silent,
) -> Floats:
    """How many records are in each bin of these encoded columns, `BINS` of them at most.

    **Guarantee.** One Gaussian event without sampling; a record counts for one in each column, so
    its contribution has the norm √columns, which is what the noise is scaled to.
    """
    found = [
        np.stack([bins_of(x[:, c], its) for c, its in zip(columns, edges, strict=True)], axis=1)
        for x, _ in revealed(private, "read", progress)
    ]
    counts = clipping.histograms(np.concatenate(found), BINS)
    return noise.gaussian(counts, purpose=HISTOGRAMS, ledger=ledger, entropy=entropy)


def measure(
    private: Described,
    phi: FeatureMap,
    places: Places = Places(),  # noqa: B008
    *,
    ledger: Ledger,
    entropy: Entropy,
    progress: Progress = silent,
) -> Moments:
    """Both, in one pass over the records, of which none is kept.

    `places` are public, or made of noisy histograms; each record is exchanged by itself.

    **Guarantee.** Two Gaussian events without sampling. The sums: a record contributes a matrix of
    Frobenius norm one, rounding included in the bound that is noised. The counts: a record counts
    for one, in one class. The sums without noise never leave this function.
    """
    classes, sums = len(private.schema.classes), np.zeros((len(private.schema.classes), phi.size))
    labels = []
    for x, y in revealed(private, "features", progress):
        labels.append(y)
        for label in range(classes):
            sums[label] += _sum_of(phi, places.of(x[y == label]))
    counts = clipping.histograms(np.concatenate(labels)[:, None], classes)
    draw = functools.partial(noise.gaussian, ledger=ledger, entropy=entropy)
    return Moments(draw(CLIP.bounded(sums), purpose=EMBEDDING), draw(counts, purpose=COUNTS)[0])


def _sum_of(phi: FeatureMap, x: NDArray[np.floating]) -> Floats:
    """Σ φ / ‖φ‖ over some records, in float64: others are rounded alike without any one of them."""
    total = np.zeros(phi.size)
    if not len(x):
        return total
    with jax.enable_x64(True):
        for positions, mask in sampling.pieces(np.arange(len(x)), AT_A_TIME):
            records = jnp.asarray(x[positions], jnp.float64)
            total += np.asarray(clipped_sum(phi, records, jnp.asarray(mask)))
    return total


@functools.partial(jax.jit, static_argnames=("phi",))
def clipped_sum(
    phi: FeatureMap, x: Float[Array, "n d"], mask: Bool[Array, " n"]
) -> Float[Array, " f"]:
    """Of the records that are not padding, each scaled to norm one; what is not finite is left out.

    **Guarantee.** Each contributes a vector of norm at most `CLIP.record_norm`, whatever it holds:
    encoded records are in [0, 1], and what is not is taken to be, because norms in closed form
    lose their digits far outside.
    """
    # Zero times infinity is no number: what is left out is taken out, not multiplied away.
    sound = mask & jnp.isfinite(x).all(axis=1)
    x = jnp.clip(jnp.where(sound[:, None], x, 0), 0, 1)
    return phi.total(x, lambda norms: jnp.where(sound, CLIP.factors(norms), 0))
