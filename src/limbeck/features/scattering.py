"""The two-dimensional scattering transform: wavelets, modulus, low-pass, twice.

With ψ_{j,θ} the Morlet wavelet of scale 2^j (j < J) at one of L angles and φ_J the Gaussian window
of scale 2^J (§2.4 of DP-KIP-ScatterNet):

    U₁ = |x ⋆ ψ_{j₁,θ₁}|,   U₂ = |U₁ ⋆ ψ_{j₂,θ₂}|  for j₂ > j₁,
    S₀ = x ⋆ φ_J,   S₁ = U₁ ⋆ φ_J,   S₂ = U₂ ⋆ φ_J,

each kept at every 2^J-th pixel: 1 + LJ + L²J(J−1)/2 channels. Filters, padding and the order of
channels are Kymatio's (its π is 3.1415), and so is the result.

**How it is computed.** Pictures here are small, and a processor multiplies matrices far better
than it transforms them. All maps are real, and so are the wavelets' spectra; hence Hartley's
transform, the real sibling of Fourier's, along height and width: two symmetric matrices, into which
the padding goes as well. In it a convolution joins a frequency with its mirror images only, and
subsampling adds frequencies up that can no longer be told apart. So a convolution is a weighted sum
of pieces of the spectrum, some of them read backwards, in one pass; and the way back is as short as
the result. The way of derivatives is the same, with weights of its own. Records, colours and the
first angle are the last axis throughout, so that nothing is transposed. The window is a Gaussian
and therefore separable.

References
----------
Bruna & Mallat 2013; Andreux et al. 2020 (Kymatio); Tramèr & Boneh 2021 for the normalisation.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, unit_norm
from limbeck.features.morlet import Bank, Filters, Matrices, filter_bank, padded

Maps = Float[Array, "h o w m"]  # o: angles of the second wavelet; m: of the first, colours, records


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
        return tuple(padded(side, self.scales) // scale - 2 for side in (height, width))

    @property
    def batch(self) -> int:
        """What the caches hold, on the way back too.

        A multiple of four records, which stand side by side: then every record takes the same way
        through the vector units, and is rounded alike.
        """
        return 8 if self.shape[2] == 1 else 4

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """Coefficients, normalised within the record."""
        return self._normalised(self._scattered(x)).T

    def coefficients(self, x: Float[Array, "n d"]) -> Float[Array, "n k h w"]:
        """The transform itself, one channel of the picture after the other."""
        return jnp.moveaxis(self._scattered(x), 3, 0)

    def _scattered(self, x: Float[Array, "n d"]) -> Float[Array, "k h w n"]:
        height, width, colours = self.shape
        filters = filter_bank(height, width, self.scales, self.orientations, str(x.dtype))
        planes = x.reshape(len(x), height, width, colours).transpose(1, 2, 3, 0)
        found = _scatter(filters, planes.reshape(height, width, -1), self.orientations)
        found = found.reshape(*found.shape[:3], colours, -1).transpose(3, 2, 0, 1, 4)
        return found.reshape(self.channels, *found.shape[2:])

    def _normalised(self, found: Float[Array, "k h w n"]) -> Float[Array, "f n"]:
        if self.group:
            grouped = found.reshape(self.channels // self.group, -1, found.shape[3])
            centred = grouped - jnp.mean(grouped, axis=1, keepdims=True)
            variance = jnp.mean(centred**2, axis=1, keepdims=True)
            found = centred / jnp.sqrt(variance + 1e-5)
        return unit_norm(found.reshape(self.size, -1), axis=0)


def _scatter(filters: Filters, x: Float[Array, "h w n"], angles: int) -> Float[Array, "h1 w1 k n"]:
    u0 = x[:, None]
    zero, first, second = _smooth(filters.smooth_picture, u0), [], []
    scales = len(filters.smooth)
    for j1 in range(scales):
        u1 = _modulus(*_wavelets(filters.first[j1], u0, 1))  # [h, 1, w, (θ₁ n)]
        s1 = _smooth(filters.smooth[j1], u1)
        first.append(s1.reshape(len(s1), s1.shape[2], angles, -1))
        finer = []
        for j2 in range(j1 + 1, scales):
            u2 = _modulus(*_wavelets(filters.second[j1, j2], u1, angles))  # [h, θ₂, w, (θ₁ n)]
            s2 = _smooth(filters.smooth[j2], u2)
            finer.append(s2.reshape(*s2.shape[:3], angles, -1))
        if finer:  # by θ₁, then j₂, then θ₂
            s2 = jnp.stack(finer, axis=1).transpose(0, 3, 4, 1, 2, 5)
            second.append(s2.reshape(*s2.shape[:2], -1, s2.shape[-1]))
    return jnp.concatenate([zero.swapaxes(1, 2), *first, *second], axis=2)


def _wavelets(bank: Bank, u: Float[Array, "h 1 w n"], outer: int) -> tuple[Maps, Maps]:
    """u ⋆ ψ_θ for all angles θ, the real parts and the imaginary ones.

    Angles are the axis `outer`, or with `outer` 1 they come before the records on the last axis,
    which makes that long.
    """
    parts, images, angles, stride, height, _, width = bank.weights.shape
    weights = bank.weights.reshape(2, 2, outer, -1, *bank.weights.shape[3:])
    weights = weights.transpose(0, 1, 4, 6, 5, 2, 7, 3)[..., None]  # [.., a, b, k, o, l, i, 1]
    sides = height, width

    @jax.custom_vjp
    def convolved(u: Float[Array, "h 1 w n"]) -> tuple[Maps, Maps]:
        spectrum = _separable(bank.there, u)[:, 0]

        def part(which: int) -> Maps:
            total = sum(
                weights[which, image, a, b]
                * _image(spectrum, sides, (a, b), which, image)[:, None, :, None]
                for image in range(images)
                for a in range(stride)
                for b in range(stride)
            )
            total = jnp.asarray(total).reshape(height, outer, width, -1)
            return _separable((bank.here[0][:-1], bank.here[1][:-1]), total)

        return part(0), part(1)

    def transposed(_: None, d: tuple[Maps, Maps]) -> tuple[Float[Array, "h 1 w n"]]:
        """An even spectrum is its own transpose, an odd one (the imaginary part) its negative."""
        total: Array = jnp.zeros((), u.dtype)
        for which in range(parts):
            spectra = _separable(bank.here, d[which])
            spectra = spectra.reshape(height + 1, outer, width + 1, angles // outer, -1)
            for image in range(images):
                for o, i in np.ndindex(outer, angles // outer):
                    weight = weights[which, image, ..., o, :, i, :].transpose(0, 2, 1, 3, 4)
                    piece = _image(spectra[:, o, :, i], sides, (0, 0), which, image)
                    total = total + (-1) ** which * weight * piece[:, None]
        total = total.reshape(stride * height, 1, stride * width, -1)
        return (_separable((bank.there[0][:-1].T, bank.there[1][:-1].T), total),)

    convolved.defvjp(lambda u: (convolved(u), None), transposed)
    return convolved(u)


def _image(
    x: Float[Array, "k1 l1 n"],
    sides: tuple[int, int],
    place: tuple[int, int],
    part: int,
    image: int,
) -> Float[Array, "k l n"]:
    """The piece of the spectrum `x` of these `sides` that begins at `place` times them.

    For the real part x_kl and x_-k-l, for the imaginary one x_k-l and x_-kl.
    """
    for axis, mirrored in enumerate((image, image ^ part)):
        start, side = place[axis] * sides[axis], sides[axis]
        if mirrored:
            x = jnp.flip(x, axis)
        x = jax.lax.slice_in_dim(x, start, start + side, axis=axis)
    return x


@jax.custom_vjp
def _modulus(re: Maps, im: Maps) -> Maps:
    """|re + i im|; at zero, where it has no derivative, that is zero."""
    return jnp.sqrt(re**2 + im**2)


def _modulus_back(z: tuple[Maps, Maps], d: Maps) -> tuple[Maps, Maps]:
    re, im = jax.lax.optimization_barrier(z)  # else moduli are kept as well, beyond the caches
    scaled = d / jnp.maximum(_modulus(re, im), 1e-19)
    return scaled * re, scaled * im


_modulus.defvjp(lambda re, im: (_modulus(re, im), (re, im)), _modulus_back)


def _smooth(matrices: Matrices, u: Maps) -> Maps:
    """u ⋆ φ.

    On the way back the matrices are laid out as fast products need them; left to itself, the
    compiler reads them along the columns. JAX has then no way forward of derivatives;
    `Scattering.along` is one.
    """
    transposed = np.ascontiguousarray(matrices[0].T), np.ascontiguousarray(matrices[1].T)
    smooth = jax.custom_vjp(functools.partial(_separable, matrices))
    smooth.defvjp(
        lambda u: (_separable(matrices, u), None), lambda _, d: (_separable(transposed, d),)
    )
    return smooth(u)


def _separable(matrices: Matrices, u: Maps) -> Maps:
    """Products along the width and along the height."""
    height, outer, width, count = u.shape
    along_height, along_width = matrices
    every_row = np.broadcast_to(along_width, (height * outer, *along_width.shape))
    columns = jnp.matmul(every_row, u.reshape(height * outer, width, count))
    rows = jnp.matmul(along_height, columns.reshape(height, -1))
    return rows.reshape(-1, outer, len(along_width), count)
