"""The two-dimensional scattering transform: wavelets, modulus, low-pass, twice.

With ψ_{j,θ} the Morlet wavelet of scale 2^j (j < J) at one of L angles and φ_J the Gaussian window
of scale 2^J (§2.4 of DP-KIP-ScatterNet):

    U₁ = |x ⋆ ψ_{j₁,θ₁}|,   U₂ = |U₁ ⋆ ψ_{j₂,θ₂}|  for j₂ > j₁,
    S₀ = x ⋆ φ_J,   S₁ = U₁ ⋆ φ_J,   S₂ = U₂ ⋆ φ_J,

each kept at every 2^J-th pixel: 1 + LJ + L²J(J−1)/2 channels. Filters, padding and the order of
channels are Kymatio's (its π is 3.1415), and so is the result.

**How it is computed.** Pictures here are small, and a processor multiplies matrices far better
than it transforms them. A map is Fourier transformed along its height only. There a convolution
with a bank of wavelets is, at each of the half spectrum's frequencies, one real matrix along the
width: transform, filter, inverse and subsampling in one. Then the height is transformed back.
Records are the last axis throughout, so that each step is one large product and nothing is
transposed. The window is a Gaussian and therefore separable: two thin matrices.

References
----------
Bruna & Mallat 2013; Andreux et al. 2020 (Kymatio); Tramèr & Boneh 2021 for the normalisation.
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

from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, unit_norm

Floats = NDArray[np.floating]
Complexes = NDArray[np.complexfloating]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scattering(FeatureMap):
    """Scattering coefficients of pictures of `shape` (height, width, channels), of unit norm.

    Before that, the coefficients of every `group` neighbouring channels of one record are shifted
    and scaled to mean zero and variance one; with `group` None they are left as they are.

    Examples
    --------
    >>> Scattering(shape=(28, 28, 1)).size
    3969
    """

    shape: tuple[int, int, int]
    scales: int = 2
    orientations: int = 8
    group: int | None = 3

    def __post_init__(self) -> None:
        least = 2**self.scales + 1
        if min(self.shape[:2]) < least:
            raise UserError(f"scattering needs pictures of at least {least} by {least} pixels")
        if self.group and self.channels % self.group:
            raise UserError(f"{self.channels} channels cannot be grouped by {self.group}")

    @property
    def channels(self) -> int:
        """The number of output channels."""
        scales, angles = self.scales, self.orientations
        paths = 1 + angles * scales + angles**2 * scales * (scales - 1) // 2
        return paths * self.shape[2]

    @property
    def size(self) -> int:
        """Channels times the positions that are kept."""
        return self.channels * math.prod(self.grid)

    @property
    def grid(self) -> tuple[int, int]:
        """The positions that are kept, along the height and along the width."""
        height, width, _ = self.shape
        scale = 2**self.scales
        return tuple(_padded(side, self.scales) // scale - 2 for side in (height, width))

    @property
    def batch(self) -> int:
        """About 32 channels of pictures at a time.

        A multiple of eight records: then every record takes the same way through the vector units,
        and is rounded alike.
        """
        return 8 * max(1, 4 // self.shape[2])

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Coefficients, normalised within the record."""
        found = self.coefficients(x)
        if self.group:
            grouped = found.reshape(len(x), self.channels // self.group, -1)
            centred = grouped - jnp.mean(grouped, axis=2, keepdims=True)
            variance = jnp.mean(centred**2, axis=2, keepdims=True)
            found = centred / jnp.sqrt(variance + 1e-5)
        return unit_norm(found.reshape(len(x), -1))

    def coefficients(self, x: Float[Array, "n d"]) -> Float[Array, "n k h w"]:
        """The transform itself, one channel of the picture after the other."""
        height, width, colours = self.shape
        pictures = x.reshape(len(x), height, width, colours).transpose(1, 2, 3, 0)
        filters = _filters(height, width, self.scales, self.orientations, str(x.dtype))
        found = _scatter(filters, pictures.reshape(height, width, -1), self.orientations)
        found = found.reshape(*found.shape[:3], colours, len(x)).transpose(4, 3, 2, 0, 1)
        return found.reshape(len(x), self.channels, *found.shape[3:])


class _Waves(NamedTuple):
    """From a map to its convolution with the wavelets of one scale, subsampled."""

    spectrum: Floats  # [(k ri), h]: half the spectrum along the height
    filtered: Floats  # [k, (ri e w' θ), (ri w)]: at each frequency, all along the width
    inverse: Floats  # [h', (k ri)]


class _Filters(NamedTuple):
    padding: tuple[tuple[int, int], tuple[int, int]]
    waves: dict[tuple[int, int], _Waves]  # by resolution 2^-r of the map and scale of the wavelet
    window: list[tuple[Floats, Floats]]  # by resolution; along the height, along the width


def _scatter(filters: _Filters, x: Float[Array, "h w n"], angles: int) -> Float[Array, "h1 w1 k n"]:
    u0 = jnp.pad(x, (*filters.padding, (0, 0)), mode="reflect")
    zero, first, second = _smooth(filters, u0, 0)[:, :, None], [], []
    scales = len(filters.window)
    for j1 in range(scales):
        u1 = _wavelets(filters.waves[0, j1], u0)  # [h, w, (θ₁ n)]
        s1 = _smooth(filters, u1, j1)
        first.append(s1.reshape(*s1.shape[:2], angles, -1))
        finer = []
        for j2 in range(j1 + 1, scales):
            u2 = _wavelets(filters.waves[j1, j2], u1)  # [h, w, (θ₂ θ₁ n)]
            s2 = _smooth(filters, u2, j2)
            finer.append(s2.reshape(*s2.shape[:2], angles, angles, -1))
        if finer:  # by θ₁, then j₂, then θ₂
            s2 = jnp.stack(finer, axis=2).transpose(0, 1, 4, 2, 3, 5)
            second.append(s2.reshape(*s2.shape[:2], -1, s2.shape[-1]))
    return jnp.concatenate([zero, *first, *second], axis=2)


def _wavelets(waves: _Waves, u: Float[Array, "h w n"]) -> Float[Array, "h1 w1 m"]:
    """|u ⋆ ψ_θ| for all angles θ, which come before the records on the last axis."""
    frequencies, _, columns = waves.filtered.shape
    half = waves.spectrum @ u.reshape(len(u), -1)
    convolved = waves.filtered @ half.reshape(frequencies, columns, -1)
    back = waves.inverse @ convolved.reshape(waves.inverse.shape[1], -1)
    width = u.shape[1] * len(waves.inverse) // u.shape[0]
    return _modulus(back.reshape(len(back), 2, width, -1))


@jax.custom_jvp
def _modulus(z: Float[Array, "h 2 w n"]) -> Float[Array, "h w n"]:
    """|z| of real and imaginary parts."""
    return jnp.sqrt(jnp.sum(z**2, axis=1))


@_modulus.defjvp
def _modulus_jvp(
    primals: tuple[Float[Array, "h 2 w n"]], tangents: tuple[Float[Array, "h 2 w n"]]
) -> tuple[Float[Array, "h w n"], Float[Array, "h w n"]]:
    """Along the unit vector z/|z|; at zero, where there is none, the derivative is zero."""
    (z,), (dz,) = primals, tangents
    modulus = _modulus(z)
    unit = z * jnp.where(modulus > 0, 1 / jnp.where(modulus > 0, modulus, 1), 0)[:, None]
    return modulus, jnp.sum(unit * dz, axis=1)


def _smooth(filters: _Filters, u: Float[Array, "h w n"], r: int) -> Float[Array, "h1 w1 n"]:
    along_height, along_width = filters.window[r]
    shorter = along_height @ u.reshape(len(u), -1)
    return jnp.matmul(along_width, shorter.reshape(len(shorter), *u.shape[1:]))


def _padded(side: int, scales: int) -> int:
    """The side with room for the window, a multiple of its scale."""
    return int((side // 2**scales + 2) * 2**scales)


@functools.lru_cache(maxsize=8)
def _filters(height: int, width: int, scales: int, angles: int, dtype: str) -> _Filters:
    """Everything that does not depend on the picture."""
    sides = _padded(height, scales), _padded(width, scales)
    spectra = {}
    for j in range(scales):
        bank = [_morlet(sides, j, angle, angles) for angle in range(angles)]
        for r in range(j + 1):
            spectra[r, j] = np.stack([_coarser(_coarser(wave, 0, r), 1, r) for wave in bank])
    waves = {
        (r, j): _Waves(*(part.astype(dtype) for part in _waves(spectrum, 2 ** (j - r))))
        for (r, j), spectrum in spectra.items()
        if r == 0 or j > r
    }
    window = np.fft.fft2(_gabor(sides, 0.8 * 2 ** (scales - 1), 0, 0, 1)).real
    along = [window[:, 0] / math.sqrt(window[0, 0]), window[0] / math.sqrt(window[0, 0])]
    return _Filters(
        padding=_padding(height, width, sides),
        waves=waves,
        window=[
            (
                _window(_coarser(along[0], 0, r), 2 ** (scales - r)).astype(dtype),
                _window(_coarser(along[1], 0, r), 2 ** (scales - r)).astype(dtype),
            )
            for r in range(scales)
        ],
    )


def _padding(
    height: int, width: int, sides: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    more = sides[0] - height, sides[1] - width
    return (more[0] // 2, more[0] - more[0] // 2), (more[1] // 2, more[1] - more[1] // 2)


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


def _waves(psi: Floats, stride: int) -> tuple[Floats, Floats, Floats]:
    """The matrices of `_Waves` for the spectra ψ̂ [θ, h, w] of one scale.

    The wavelets' spectra are real. Their even part gives the real part of the convolution and the
    odd part the imaginary one; both are real maps, for which half a spectrum will do.
    """
    _, height, width = psi.shape
    half = height // 2 + 1
    mirrored = np.roll(psi[:, ::-1, ::-1], 1, axis=(1, 2))
    parts = np.stack([(psi + mirrored) / 2, (psi - mirrored) / 2j])[:, :, :half]
    fourier = _fourier(width)
    back = fourier.conj()[::stride] / width
    matrix = np.einsum("vl,etkl,lw->kevtw", back, parts, fourier, optimize=True)
    real = np.stack([matrix.real, -matrix.imag], axis=-2)
    imaginary = np.stack([matrix.imag, matrix.real], axis=-2)
    filtered = np.stack([real, imaginary], axis=1).reshape(half, -1, 2 * width)
    return _half_spectrum(height), filtered, _from_half_spectrum(height, stride)


def _half_spectrum(side: int) -> Floats:
    rows = _fourier(side)[: side // 2 + 1]
    return np.stack([rows.real, rows.imag], axis=1).reshape(-1, side)


def _from_half_spectrum(side: int, stride: int) -> Floats:
    """Every `stride`-th value of the real signal."""
    once = np.isin(np.arange(side // 2 + 1), [0, side / 2])
    columns = _fourier(side).conj()[::stride, : side // 2 + 1] * np.where(once, 1, 2) / side
    return np.stack([columns.real, -columns.imag], axis=2).reshape(len(columns), -1)


def _window(spectrum: Floats, stride: int) -> Floats:
    """Convolution with the window at every `stride`-th place, without the outermost two."""
    fourier = _fourier(len(spectrum))
    matrix = fourier.conj()[::stride] @ (spectrum[:, None] * fourier) / len(spectrum)
    return np.asarray(matrix.real[1:-1])
