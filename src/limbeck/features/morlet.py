"""The filters of the scattering transform, as weights and as matrices that are multiplied with.

Morlet wavelets and a Gaussian window, both made periodic, as Kymatio has them (its π is 3.1415).
"""

import functools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Complexes = NDArray[np.complexfloating]
Matrices = tuple[Floats, Floats]  # along the height, along the width


class Bank(NamedTuple):
    """Wavelets of one scale for maps of one resolution.

    `there` and `here` are Hartley's transforms of the maps, and of what comes out; at their end the
    first frequency stands once more, so that mirror images are pieces read backwards.
    """

    weights: Floats  # [part, image, θ, a, k, b, l]
    there: Matrices
    here: Matrices


class Filters(NamedTuple):
    """Those of both orders and the window; for pictures the padding is in their matrices."""

    first: list[Bank]  # by the scale of the wavelet
    second: dict[tuple[int, int], Bank]  # by the scales of both wavelets
    smooth_picture: Matrices
    smooth: list[Matrices]  # by the resolution 2^-r of the map


@functools.lru_cache(maxsize=8)
def filter_bank(height: int, width: int, scales: int, angles: int, dtype: str) -> Filters:
    """Everything that does not depend on the picture."""
    sides = padded(height, scales), padded(width, scales)
    reflected = _reflected(height, sides[0]), _reflected(width, sides[1])
    spectra = [
        np.stack([_morlet(sides, j, angle, angles) for angle in range(angles)])
        for j in range(scales)
    ]
    window = np.fft.fft2(_gabor(sides, 0.8 * 2 ** (scales - 1), 0, 0, 1)).real
    along = [window[:, 0] / math.sqrt(window[0, 0]), window[0] / math.sqrt(window[0, 0])]

    def of_pictures(matrices: Iterable[Floats]) -> Iterable[Floats]:
        return (matrix @ pad for matrix, pad in zip(matrices, reflected, strict=True))

    def typed(matrices: Iterable[Floats]) -> Matrices:
        along_height, along_width = (matrix.astype(dtype) for matrix in matrices)
        return along_height, along_width

    def hartley(r: int) -> Iterable[Floats]:
        return (_cas(side >> r)[np.r_[: side >> r, 0]] for side in sides)

    def bank(r: int, j: int, there: Iterable[Floats]) -> Bank:
        weights = _weights(_coarser(_coarser(spectra[j], 1, r), 2, r), 2 ** (j - r))
        return Bank(weights.astype(dtype), typed(there), typed(hartley(j)))

    def smooth(r: int) -> Iterable[Floats]:
        return (_window(_coarser(axis, 0, r), 2 ** (scales - r)) for axis in along)

    return Filters(
        first=[bank(0, j, of_pictures(hartley(0))) for j in range(scales)],
        second={
            (r, j): bank(r, j, hartley(r)) for r in range(scales) for j in range(r + 1, scales)
        },
        smooth_picture=typed(of_pictures(smooth(0))),
        smooth=[typed(smooth(r)) for r in range(scales)],
    )


def padded(side: int, scales: int) -> int:
    """The side with room for the window, a multiple of its scale."""
    return int((side // 2**scales + 2) * 2**scales)


def _reflected(side: int, padded: int) -> Floats:
    """The matrix that mirrors what is near the ends beyond them."""
    before = (padded - side) // 2
    return np.pad(np.eye(side), ((before, padded - side - before), (0, 0)), mode="reflect")


def _gabor(
    sides: tuple[int, int], sigma: float, theta: float, frequency: float, slant: float
) -> Complexes:
    """A plane wave under a Gaussian that is 1/slant times as long across, made periodic."""
    height, width = sides
    h, w = np.arange(-2 * height, 3 * height)[:, None], np.arange(-2 * width, 3 * width)
    along = math.cos(theta) * h + math.sin(theta) * w
    across = math.cos(theta) * w - math.sin(theta) * h
    exponent = -(along**2 + slant**2 * across**2) / (2 * sigma**2) + 1j * frequency * along
    tiles = np.exp(exponent).reshape(5, height, 5, width)
    return np.asarray(tiles.sum(axis=(0, 2)) * slant / (2 * 3.1415 * sigma**2))


def _morlet(sides: tuple[int, int], j: int, angle: int, angles: int) -> Floats:
    """The spectrum of ψ_{j,θ}: a Gabor wave less a Gaussian, so that its mean is zero."""
    sigma, slant = 0.8 * 2**j, 4 / angles
    theta = (int(angles - angles / 2 - 1) - angle) * math.pi / angles
    wave = _gabor(sides, sigma, theta, 3 / 4 * math.pi / 2**j, slant)
    bump = _gabor(sides, sigma, theta, 0, slant)
    return np.asarray(np.fft.fft2(wave - wave.sum() / bump.sum() * bump).real)


def _coarser(spectrum: Floats, axis: int, r: int) -> Floats:
    """The frequencies that are left at a resolution of 2^-r."""
    side = spectrum.shape[axis]
    left = side >> r
    return np.take(spectrum, np.r_[0 : (left + 1) // 2, side - left // 2 : side], axis)


def _fourier(side: int) -> Complexes:
    return np.asarray(np.exp(-2j * np.pi * np.outer(np.arange(side), np.arange(side)) / side))


def _cas(side: int) -> Floats:
    """Hartley's transform: orthonormal, symmetric, and its own inverse."""
    fourier = _fourier(side)
    return np.asarray((fourier.real - fourier.imag) / math.sqrt(side))


def _weights(psi: Floats, stride: int) -> Floats:
    """Of convolutions with the spectra ψ̂ [θ, k, l] of one scale: [part, image, θ, a, k, b, l].

    Along one axis an even spectrum multiplies cas_k, and an odd one turns it into −i cas_−k. With
    ψ̂ taken apart into what is even or odd along the height and along the width, the convolution is

        ψ̂_ee x_kl − ψ̂_oo x_-k-l + i (ψ̂_eo x_k-l + ψ̂_oe x_-kl).

    The frequencies (k + a H, l + b W) of all a, b < stride end in the same place (k, l).
    """
    angles, height, width = psi.shape
    (ee, eo), (oe, oo) = (_even_and_odd(part, 2) for part in _even_and_odd(psi, 1))
    parts = np.stack([ee, -oo, eo, oe]) / stride
    return parts.reshape(2, 2, angles, stride, height // stride, stride, width // stride)


def _even_and_odd(spectrum: Floats, axis: int) -> tuple[Floats, Floats]:
    mirrored = np.roll(np.flip(spectrum, axis), 1, axis)
    return (spectrum + mirrored) / 2, (spectrum - mirrored) / 2


def _window(spectrum: Floats, stride: int) -> Floats:
    """Convolution with the window at every `stride`-th place, without the outermost two."""
    fourier = _fourier(len(spectrum))
    matrix = fourier.conj()[::stride] @ (spectrum[:, None] * fourier) / len(spectrum)
    return np.asarray(matrix.real[1:-1])
