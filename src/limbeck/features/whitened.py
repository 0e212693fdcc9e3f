"""Scattering features in few coordinates of like size: the ones that are cheap to noise.

Under privacy a feature costs noise whether it tells much or little, and a gradient is limited by
the directions in which all pictures are alike. Both can be mended without looking at a record,
because scattering coefficients of any pictures are alike: those at neighbouring places and of
neighbouring wavelets go together. With z the coefficients of one colour (paths × places),
normalised as in `Scattering`,

    b = Pᵀ z D,        φ(x) = unit norm of  b_i / √(1 + v_i / floor)  for the largest v_i,

where D is the cosine basis over places, P the principal axes over paths, and v_i the mean of b_i².
P and v are those of dead leaves, pictures that nobody took. Colours are brightness and two opponent
ones, as in JPEG, which unlike red, green and blue differ from each other.

This is not in the papers.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy.fft import dct

from limbeck.features.base import ImageFeatureMap, features_of, unit_norm
from limbeck.features.inputs import ImageInputs
from limbeck.features.leaves import dead_leaves
from limbeck.features.scattering import Scattering

OPPONENT = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])


class _Basis(NamedTuple):
    """P for each colour, D along height and width, what is kept, and with which weights."""

    paths: NDArray[np.floating]  # [c, k, k]
    down: NDArray[np.floating]  # [h, h]
    across: NDArray[np.floating]  # [w, w]
    kept: NDArray[np.int32]
    weights: NDArray[np.floating]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WhitenedScattering(ImageFeatureMap):
    """Scattering of pictures of `shape`, in at most `components` coordinates, of unit norm.

    `floor` is the mean square, of coefficients with unit norm, from which on a coordinate is scaled
    down; `pictures` is how many dead leaves are looked at.

    Examples
    --------
    >>> WhitenedScattering(shape=(28, 28, 1)).size
    2048
    """

    components: int = 2048
    floor: float = 1e-3
    pictures: int = 1000

    @property
    def size(self) -> int:
        """The number of coordinates that are kept."""
        return min(self.components, self._scattering.size)

    @property
    def batch(self) -> int:
        """As scattering has it."""
        return self._scattering.batch

    @property
    def _scattering(self) -> Scattering:
        return Scattering(shape=self.shape)

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """The kept coordinates, weighted.

        Products are of one record at a time: in a product of several, on some processors, what
        is left over of the last vector is rounded otherwise.
        """
        basis = _basis(self)

        def kept(z: Float[Array, " f"]) -> Float[Array, " k"]:
            turned = _turned(self._scattering, basis, z)[basis.kept]
            return unit_norm(turned * basis.weights.astype(z.dtype), axis=0)

        return jax.lax.map(kept, self._scattering(_opponent(self.shape, x)))


def _opponent(shape: tuple[int, int, int], x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    if shape[2] != 3:
        return x
    opponent = OPPONENT.T.astype(x.dtype)
    return jax.lax.map(lambda record: (record.reshape(-1, 3) @ opponent).ravel(), x)


def _turned(scattering: Scattering, basis: _Basis, z: Float[Array, " f"]) -> Float[Array, " f"]:
    """b, all of it."""
    paths, down, across = (part.astype(z.dtype) for part in basis[:3])
    colours, k, _ = paths.shape
    z = z.reshape(colours, k, *scattering.grid)
    return jnp.einsum("cpij,cpq,ia,jb->cqab", z, paths, down, across).ravel()


@functools.lru_cache(maxsize=8)
def _basis(phi: WhitenedScattering) -> _Basis:
    scattering, colours = phi._scattering, phi.shape[2]
    inputs = ImageInputs(shape=phi.shape)
    with jax.ensure_compile_time_eval():
        leaves = inputs.from_records(dead_leaves(phi.pictures, phi.shape))
        z = features_of(scattering, np.asarray(_opponent(phi.shape, jnp.asarray(leaves))))
        places = math.prod(scattering.grid)
        of_colour = z.reshape(len(z), colours, -1, places).astype(np.float64)
        moments = np.einsum("ncpi,ncqi->cpq", of_colour, of_colour, optimize=True)
        paths = np.linalg.eigh(moments)[1]
        down, across = (dct(np.eye(side), norm="ortho", axis=0).T for side in scattering.grid)
        every = np.arange(scattering.size, dtype=np.int32)
        basis = _Basis(paths, down, across, every, np.ones(1))
        turned = np.asarray(jax.lax.map(lambda z: _turned(scattering, basis, z), jnp.asarray(z)))
    squares = np.mean(turned.astype(np.float64) ** 2, axis=0)
    kept = np.sort(np.argsort(-squares, kind="stable")[: phi.size]).astype(np.int32)
    return _Basis(paths, down, across, kept, 1 / np.sqrt(1 + squares[kept] / phi.floor))
