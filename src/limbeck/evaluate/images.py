"""How alike pictures and real ones are: a Fréchet distance on scattering features.

    ‖μ − μ'‖² + tr(C + C' − 2 (C C')^½)

of the means and covariances of features that need no download: the scattering transform (J = 2,
L = 8), its channels averaged over each quarter of the picture. It is not the FID, which takes the
activations of a network trained on ImageNet, and its numbers cannot be compared with that.
0 is best. Real pictures beside other real ones show how near to it chance lets them come.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.evaluate.score import Score, TrainedOn
from limbeck.evaluate.task import Rows, Task
from limbeck.features.scattering import Scattering

MOST = 10_000
PIECE = 32  # pictures at a time


def evaluate(task: Task) -> list[Score]:
    """Of the release, and of real pictures, with the test pictures."""
    if not task.bundle.schema.is_image:
        raise UserError("'frechet' is for images; for tables use 'similarity'")
    test = _features(task, task.test_rows)
    sets: list[tuple[TrainedOn, Rows | None]] = [
        ("release", task.release_rows),
        ("real", task.real_rows),
    ]
    return [
        Score("frechet", "distance", frechet(_features(task, rows), test), on, len(rows.y[:MOST]))
        for on, rows in sets
        if rows is not None
    ]


def frechet(ours: NDArray[np.floating], theirs: NDArray[np.floating]) -> float:
    """The distance of two samples of features, as of Gaussians with their moments."""
    (mean, root), (other_mean, other) = _moments(ours), _moments(theirs)
    # tr (C C')^½ is the sum of the singular values of C^½ C'^½.
    shared = np.linalg.svd(root @ other, compute_uv=False).sum()
    spread = np.sum(root**2) + np.sum(other**2) - 2 * shared
    return float(np.sum((mean - other_mean) ** 2) + max(spread, 0))


def _moments(
    features: NDArray[np.floating],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean, and the root of the covariance."""
    wide = features.astype(np.float64)
    mean = wide.mean(axis=0)
    values, vectors = np.linalg.eigh((wide - mean).T @ (wide - mean) / len(wide))
    return mean, (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def _features(task: Task, rows: Rows) -> NDArray[np.float32]:
    """Scattering channels averaged over each quarter, of the first `MOST` pictures."""
    phi = Scattering(shape=task.bundle.schema.image_shape)
    x = rows.x[:MOST]
    found = np.empty((len(x), 4 * phi.channels), np.float32)
    for start in range(0, len(x), PIECE):
        task.progress("features", start, len(x))
        piece = x[start : start + PIECE]
        padded = np.zeros((PIECE, x.shape[1]), np.float32)
        padded[: len(piece)] = piece
        found[start : start + len(piece)] = _quarters(phi, padded)[: len(piece)]
    return found


@functools.partial(jax.jit, static_argnames=("phi",))
def _quarters(phi: Scattering, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
    maps = phi.coefficients(x)
    height, width = maps.shape[2:]
    halves = [[slice(0, (side + 1) // 2), slice(side // 2, side)] for side in (height, width)]
    means = [
        jnp.mean(maps[:, :, rows, columns], axis=(2, 3))
        for rows in halves[0]
        for columns in halves[1]
    ]
    return jnp.concatenate(means, axis=1)
