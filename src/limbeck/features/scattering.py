"""The two-dimensional scattering transform: wavelets, modulus, low-pass, twice.

With ψ_{j,θ} the Morlet wavelet of scale 2^j (j < J) at one of L angles and φ_J the Gaussian window
of scale 2^J (§2.4 of DP-KIP-ScatterNet):

    U₁ = |x ⋆ ψ_{j₁,θ₁}|,   U₂ = |U₁ ⋆ ψ_{j₂,θ₂}|  for j₂ > j₁,
    S₀ = x ⋆ φ_J,   S₁ = U₁ ⋆ φ_J,   S₂ = U₂ ⋆ φ_J,

each kept at every 2^J-th pixel: 1 + LJ + L²J(J−1)/2 channels. Filters, padding and the order of
channels are Kymatio's (its π is 3.1415), and so is the result.

**How it is computed.** Pictures here are small, and a processor multiplies matrices far better
than it transforms them. All maps are real, and so are the wavelets' spectra; hence Hartley's
transform, the real sibling of Fourier's, along height and width: two symmetric matrices. In it a
convolution joins a frequency with its mirror images only, and subsampling adds frequencies up that
can no longer be told apart. So wavelets and subsampling are one small real matrix at each frequency
that is left, and the way back is as short as the result. Records are the last axis throughout: each
step is one product and nothing is transposed. The window is a Gaussian and therefore separable.

References
----------
Bruna & Mallat 2013; Andreux et al. 2020 (Kymatio); Tramèr & Boneh 2021 for the normalisation.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
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
Modulus = Callable[[Float[Array, "h w 2 m"]], Float[Array, "h w m"]]


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
        """What the caches hold, on the way back too.

        A multiple of eight records: then every record takes the same way through the vector units,
        and is rounded alike.
        """
        return 8

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Coefficients, normalised within the record."""
        return self._normalised(self._scattered(x, _modulus)).T

    def coefficients(self, x: Float[Array, "n d"]) -> Float[Array, "n k h w"]:
        """The transform itself, one channel of the picture after the other."""
        return jnp.moveaxis(self._scattered(x, _modulus), 3, 0)

    def along(self, x: Float[Array, " d"], directions: Float[Array, "p d"]) -> Float[Array, "p f"]:
        """The derivative along each direction."""
        return _in_pieces(self._linearised(x), directions, 4 * self.batch)

    def back(self, x: Float[Array, " d"], directions: Float[Array, "n f"]) -> Float[Array, "n d"]:
        """The transposed derivative of each direction; rounded alike wherever it stands."""
        _, back = jax.vjp(self._linearised(x), jnp.zeros((self.batch, len(x)), x.dtype))
        return _in_pieces(lambda piece: back(piece)[0], directions, self.batch)

    def _linearised(
        self, x: Float[Array, " d"]
    ) -> Callable[[Float[Array, "b d"]], Float[Array, "b f"]]:
        """The derivative at one record.

        All but the modulus is linear, so directions take the way of a picture, and the modulus is
        the product with the unit vectors of the record.
        """
        units = []

        def kept(z: Float[Array, "h w 2 k"]) -> Float[Array, "h w k"]:
            modulus = _modulus(z)
            some = modulus > 0
            unit = z / jnp.where(some, modulus, 1)[:, :, None]
            units.append(jnp.where(some[:, :, None], unit, 0)[..., None])
            return modulus

        found = self._scattered(x[None], kept)

        def linear(directions: Float[Array, "b d"]) -> Float[Array, "b f"]:
            own = iter(units)

            def along(z: Float[Array, "h w 2 m"]) -> Float[Array, "h w m"]:
                unit = next(own)
                z = z.reshape(*unit.shape[:-1], -1)
                return jnp.sum(unit * z, axis=2).reshape(*z.shape[:2], -1)

            scattered = self._scattered(directions, along)
            first = jnp.broadcast_to(found, scattered.shape)
            _, normalised = jax.jvp(self._normalised, (first,), (scattered,))
            return normalised.T

        return linear

    def _scattered(self, x: Float[Array, "n d"], modulus: Modulus) -> Float[Array, "k h w n"]:
        height, width, colours = self.shape
        filters = _filters(height, width, self.scales, self.orientations, str(x.dtype))

        def of_colour(plane: Float[Array, "h w n"]) -> Float[Array, "k h w n"]:
            found = _scatter(filters, plane, self.orientations, modulus)
            return found.transpose(2, 0, 1, 3)

        planes = x.reshape(len(x), height, width, colours).transpose(3, 1, 2, 0)
        return jnp.concatenate([of_colour(plane) for plane in planes])  # apart, for the caches

    def _normalised(self, found: Float[Array, "k h w n"]) -> Float[Array, "f n"]:
        if self.group:
            grouped = found.reshape(self.channels // self.group, -1, found.shape[3])
            centred = grouped - jnp.mean(grouped, axis=1, keepdims=True)
            variance = jnp.mean(centred**2, axis=1, keepdims=True)
            found = centred / jnp.sqrt(variance + 1e-5)
        return unit_norm(found.reshape(self.size, -1), axis=0)


def _in_pieces(
    function: Callable[[Array], Array], x: Float[Array, "n i"], size: int
) -> Float[Array, "n o"]:
    """A function of rows, of so many at a time."""
    padded = jnp.pad(x, ((0, -len(x) % size), (0, 0)))
    found = jax.lax.map(function, padded.reshape(-1, size, x.shape[1]))
    return found.reshape(len(padded), -1)[: len(x)]


class _Filters(NamedTuple):
    padding: tuple[tuple[int, int], tuple[int, int]]
    waves: dict[tuple[int, int], Floats]  # by resolution 2^-r of the map and scale of the wavelet
    window: list[tuple[Floats, Floats]]  # by resolution; along the height, along the width


def _scatter(
    filters: _Filters, x: Float[Array, "h w n"], angles: int, modulus: Modulus
) -> Float[Array, "h1 w1 k n"]:
    u0 = jnp.pad(x, (*filters.padding, (0, 0)), mode="reflect")
    zero, first, second = _smooth(filters, u0, 0)[:, :, None], [], []
    scales = len(filters.window)
    for j1 in range(scales):
        u1 = modulus(_wavelets(filters.waves[0, j1], u0))  # [h, w, (θ₁ n)]
        s1 = _smooth(filters, u1, j1)
        first.append(s1.reshape(*s1.shape[:2], angles, -1))
        finer = []
        for j2 in range(j1 + 1, scales):
            u2 = modulus(_wavelets(filters.waves[j1, j2], u1))  # [h, w, (θ₂ θ₁ n)]
            s2 = _smooth(filters, u2, j2)
            finer.append(s2.reshape(*s2.shape[:2], angles, angles, -1))
        if finer:  # by θ₁, then j₂, then θ₂
            s2 = jnp.stack(finer, axis=2).transpose(0, 1, 4, 2, 3, 5)
            second.append(s2.reshape(*s2.shape[:2], -1, s2.shape[-1]))
    return jnp.concatenate([zero, *first, *second], axis=2)


def _wavelets(waves: Floats, u: Float[Array, "h w n"]) -> Float[Array, "h1 w1 2 m"]:
    """u ⋆ ψ_θ for all angles θ, which come before the records on the last axis."""
    height, width = waves.shape[:2]
    convolved = _product(waves, _images(_hartley(u), len(u) // height))
    back = _hartley(convolved.reshape(height, width, -1))
    return back.reshape(height, width, 2, -1)


def _images(x: Float[Array, "h w n"], stride: int) -> Float[Array, "k l 2 i n"]:
    """What of the spectrum `x` enters a convolution, by the frequency (k, l) where it ends.

    x_kl and x_-k-l for the real part, x_k-l and x_-kl for the imaginary one, and of each the
    frequencies that become (k, l) when only every `stride`-th value is kept.
    """
    height, width, count = x.shape[0] // stride, x.shape[1] // stride, x.shape[2]
    down, across = _mirrored(x, 0), _mirrored(x, 1)
    images = jnp.stack([x, _mirrored(down, 1), across, down])
    images = images.reshape(2, 2, stride, height, stride, width, count)
    return images.transpose(3, 5, 0, 1, 2, 4, 6).reshape(height, width, 2, -1, count)


def _mirrored(x: Float[Array, "h w n"], axis: int) -> Float[Array, "h w n"]:
    """Frequency −k in the place of k."""
    return jnp.roll(jnp.flip(x, axis), 1, axis)


@jax.custom_jvp
def _modulus(z: Float[Array, "h w 2 n"]) -> Float[Array, "h w n"]:
    """|z| of real and imaginary parts."""
    return jnp.sqrt(z[:, :, 0] ** 2 + z[:, :, 1] ** 2)


@_modulus.defjvp
def _modulus_jvp(
    primals: tuple[Float[Array, "h w 2 n"]], tangents: tuple[Float[Array, "h w 2 n"]]
) -> tuple[Float[Array, "h w n"], Float[Array, "h w n"]]:
    """Along the unit vector z/|z|; at zero, where there is none, the derivative is zero."""
    (z,), (dz,) = primals, tangents
    modulus = _modulus(z)
    inverse = jnp.where(modulus > 0, 1 / jnp.where(modulus > 0, modulus, 1), 0)
    return modulus, inverse * jnp.sum(z * dz, axis=2)


def _smooth(filters: _Filters, u: Float[Array, "h w n"], r: int) -> Float[Array, "h1 w1 n"]:
    return _separable(*filters.window[r], u)


def _hartley(u: Float[Array, "h w n"]) -> Float[Array, "h w n"]:
    """To the basis of cas(2πkh/H) cas(2πlw/W) with cas = cos + sin, and back."""
    along_height, along_width = (_cas(side).astype(u.dtype) for side in u.shape[:2])
    return _separable(along_height, along_width, u)


def _separable(
    along_height: Floats, along_width: Floats, u: Float[Array, "h w n"]
) -> Float[Array, "h1 w1 n"]:
    rows = _product(along_height, u.reshape(len(u), -1)).reshape(-1, *u.shape[1:])
    return _product(np.broadcast_to(along_width, (len(rows), *along_width.shape)), rows)


def _product(matrix: Floats, u: Float[Array, "*b k n"]) -> Float[Array, "*b m n"]:
    """matrix @ u, and on the way back the transposed matrix, laid out as fast products need it.

    Left to itself, the compiler multiplies by a matrix that it has to read along the columns. JAX
    has then no way forward of derivatives; `Scattering.along` is one.
    """
    transposed = np.ascontiguousarray(np.swapaxes(matrix, -1, -2))

    @jax.custom_vjp
    def product(u: Float[Array, "*b k n"]) -> Float[Array, "*b m n"]:
        return jnp.matmul(matrix, u)

    product.defvjp(
        lambda u: (jnp.matmul(matrix, u), None), lambda _, d: (jnp.matmul(transposed, d),)
    )
    return product(u)


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
        (r, j): _waves(spectrum, 2 ** (j - r)).astype(dtype)
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


def _cas(side: int) -> Floats:
    """Hartley's transform: orthonormal, symmetric, and its own inverse."""
    fourier = _fourier(side)
    return np.asarray((fourier.real - fourier.imag) / math.sqrt(side))


def _waves(psi: Floats, stride: int) -> Floats:
    """The matrices [k, l, ri, θ, image] of convolutions with the spectra ψ̂ [θ, k, l] of one scale.

    Along one axis an even spectrum multiplies cas_k, and an odd one turns it into −i cas_−k. With
    ψ̂ taken apart into what is even or odd along the height and along the width, the convolution is

        ψ̂_ee x_kl − ψ̂_oo x_-k-l + i (ψ̂_eo x_k-l + ψ̂_oe x_-kl).
    """
    angles, height, width = psi.shape
    (ee, eo), (oe, oo) = (_even_and_odd(part, 2) for part in _even_and_odd(psi, 1))
    parts = np.stack([ee, -oo, eo, oe]) / stride
    parts = parts.reshape(2, 2, angles, stride, height // stride, stride, width // stride)
    parts = parts.transpose(4, 6, 0, 2, 1, 3, 5)
    return parts.reshape(*parts.shape[:4], 2 * stride**2)


def _even_and_odd(spectrum: Floats, axis: int) -> tuple[Floats, Floats]:
    mirrored = np.roll(np.flip(spectrum, axis), 1, axis)
    return (spectrum + mirrored) / 2, (spectrum - mirrored) / 2


def _window(spectrum: Floats, stride: int) -> Floats:
    """Convolution with the window at every `stride`-th place, without the outermost two."""
    fourier = _fourier(len(spectrum))
    matrix = fourier.conj()[::stride] @ (spectrum[:, None] * fourier) / len(spectrum)
    return np.asarray(matrix.real[1:-1])
