"""Perceptual features: what all layers of an untrained ResNet18 answer to an image.

§2.5 of "Differentially Private Kernel Inducing Points using features from ScatterNets": φ(x) is the
concatenation of the outputs φ_l(x) of the layers of a randomly initialised ResNet18; here the stem
and the eight blocks, and

    φ(x) = 1/√9 · [P φ_1(x) / ‖P φ_1(x)‖, ..., P φ_9(x) / ‖P φ_9(x)‖]

P averages each layer over the cells of a grid. At 28×28 the outputs are 242 176 numbers, of which
neighbours are nearly equal, most in the first layers. There are `grid` × `grid` cells in the
first stage, and half as many a side, but at least one, in each following stage, where the network
itself halves its resolution. Each layer is scaled to unit norm, so that all count alike: k(x, x')
is the mean over layers of the cosine between the outputs.

References
----------
Vinaroz & Park 2024, §2.5; He et al. 2016.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from limbeck.features import nets
from limbeck.features.base import ImageFeatureMap, unit_norm
from limbeck.features.nets import Images, Params


@dataclasses.dataclass(frozen=True, kw_only=True)
class Perceptual(ImageFeatureMap):
    """Outputs of the layers of an untrained ResNet18 on images of `shape`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> features = Perceptual(shape=(8, 8, 1), grid=1)
    >>> features(jnp.ones((3, 64))).shape
    (3, 1984)
    """

    seed: int = 0
    grid: int = 6

    @property
    def size(self) -> int:
        """Channels times cells, over all layers."""
        params = jax.eval_shape(lambda: nets.resnet18.init(jax.random.key(0), self.shape))
        image = jax.ShapeDtypeStruct((1, *self.shape), jnp.float32)
        return jax.eval_shape(_features, self.grid, params, image).shape[1]

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """The layers side by side. A black image is 0 in all of them, and so are its features."""
        return _features(self.grid, self._params, x.reshape(-1, *self.shape))

    @functools.cached_property
    def _params(self) -> Params:
        with jax.ensure_compile_time_eval():
            return nets.resnet18.init(jax.random.key(self.seed), self.shape)


@functools.partial(jax.jit, static_argnums=0)
def _features(grid: int, params: Params, images: Images) -> Float[Array, "n f"]:
    params = jax.tree.map(lambda leaf: leaf.astype(images.dtype), params)
    outputs = nets.resnet18_layers(params, images)
    cells = [max(1, grid // (output.shape[3] // nets.WIDTHS[0])) for output in outputs]
    layers = [
        unit_norm(_average(output, side).reshape(len(output), -1))
        for output, side in zip(outputs, cells, strict=True)
    ]
    return jnp.concatenate(layers, axis=1) / math.sqrt(len(layers))


def _average(output: Images, cells: int) -> Images:
    """Means over the cells of a grid of at most `cells` × `cells`."""
    down, across = (
        jnp.asarray(_cells(side, min(side, cells)), output.dtype) for side in output.shape[1:3]
    )
    return jnp.einsum("ih,nhwc,jw->nijc", down, output, across)


def _cells(side: int, cells: int) -> np.ndarray:
    """Rows of weights: the share of each position in each of `cells` equal intervals."""
    edges = np.arange(cells + 1) * side / cells
    position = np.arange(side)
    upper = np.minimum(edges[1:, None], position + 1)
    lower = np.maximum(edges[:-1, None], position)
    return np.maximum(upper - lower, 0) * cells / side
