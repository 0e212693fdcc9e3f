"""The empirical neural tangent kernel: gradients of an untrained network as features.

For a network f with random initial parameters θ (§2.3 of "Differentially Private Kernel Inducing
Points using features from ScatterNets"; the sum over the logits f_o is DP-NTK's):

    φ(x) = ∂/∂θ Σ_o f_o(θ, x)                        k(x, x') = ⟨φ(x), φ(x')⟩

A network has too many parameters P for its gradients to be kept: 11 million in a ResNet18. A
CountSketch adds up, in each of F buckets, the coordinates that fell in it, each with a random sign:

    ψ_b = Σ_{i: bucket(i) = b} sign(i) φ_i           E⟨ψ(x), ψ(x')⟩ = k(x, x')

The signs and buckets are drawn once and are public. The kernel of the sketch is unbiased, with
variance at most (k(x, x')² + k(x, x) k(x', x')) / F: relative to √(k(x, x) k(x', x')) its error is
at most √(2/F) or so, 0.022 at F = 4096. What is returned is ψ scaled to unit norm.

References
----------
Vinaroz & Park 2024, §2.3; Yang et al. 2023 (DP-NTK); Charikar, Chen & Farach-Colton 2002 and
Weinberger et al. 2009 (CountSketch and its variance).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from limbeck.data.schema import Schema
from limbeck.features import nets
from limbeck.features.base import ImageFeatureMap, Records, unit_norm
from limbeck.features.inputs import Inputs
from limbeck.features.nets import Images, Logits, Params

Apply = Callable[[Params, Images], Logits]

# LeNet's two poolings leave nothing of smaller pictures worth a convolution.
LEAST_SIDE = 16

NETS = {
    "lenet": nets.lenet,
    "resnet18": nets.resnet18,
    "fully-connected": nets.fully_connected,
}


class _Drawn(NamedTuple):
    """All that is random, and public."""

    params: Params
    buckets: Int[Array, " p"]
    signs: Int[Array, " p"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmpiricalNTK(ImageFeatureMap):
    """Gradients of an untrained `net` on images of `shape`, sketched to `sketch` coordinates.

    There is no sketch where the network has no more than `sketch` parameters.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> features = EmpiricalNTK(shape=(16, 16, 1), net="lenet", sketch=512)
    >>> features(jnp.ones((3, 256))).shape
    (3, 512)
    """

    takes: ClassVar[Records] = "both"

    net: Literal["lenet", "resnet18", "fully-connected"]
    seed: int = 0
    sketch: int = 4096

    @classmethod
    def for_schema(cls, schema: Schema, inputs: Inputs) -> Self:
        """The paper's choice: LeNet for grey images, ResNet18 for colour.

        Images of fewer than 16 pixels a side, and rows of a table as images of shape (1, 1, D), are
        given to the fully connected network.
        """
        shape = schema.image_shape if schema.is_image else (1, 1, inputs.dimension)
        if min(shape[:2]) < LEAST_SIDE:
            return cls(shape=shape, net="fully-connected")
        return cls(shape=shape, net="lenet" if shape[2] == 1 else "resnet18")

    @property
    def size(self) -> int:
        """The smaller of `sketch` and the number of parameters."""
        params = jax.eval_shape(lambda: NETS[self.net].init(jax.random.key(0), self.shape))
        return min(self.sketch, sum(leaf.size for leaf in jax.tree.leaves(params)))

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """One record after another: the gradients of a batch would fill the memory."""
        return _features(self, self._drawn, x.reshape(-1, *self.shape))

    @functools.cached_property
    def _drawn(self) -> _Drawn:
        with jax.ensure_compile_time_eval():
            of_net, of_sketch = jax.random.split(jax.random.key(self.seed))
            params = NETS[self.net].init(of_net, self.shape)
            count = sum(leaf.size for leaf in jax.tree.leaves(params))
            bits = jax.random.bits(of_sketch, (count,), jnp.uint32)
            buckets = ((bits >> 1) % self.sketch).astype(jnp.int32)
            return _Drawn(params, buckets, 2 * (bits & 1).astype(jnp.int8) - 1)


def jacobian_features(apply: Apply, params: Params, images: Images) -> Float[Array, "n p"]:
    """∂/∂θ Σ_o f_o(θ, x) for each image x and any network, in the order of `ravel_pytree`."""

    def logits(params: Params, image: Float[Array, "h w c"]) -> Float[Array, ""]:
        return apply(params, image[None]).sum()

    return jax.vmap(lambda image: ravel_pytree(jax.grad(logits)(params, image))[0])(images)


@functools.partial(jax.jit, static_argnums=0)
def _features(ntk: EmpiricalNTK, drawn: _Drawn, images: Images) -> Float[Array, "n f"]:
    params = jax.tree.map(lambda leaf: leaf.astype(images.dtype), drawn.params)

    # What the derivative needs is computed again, not kept: it is as large as the gradients.
    @jax.checkpoint
    def one(image: Float[Array, "h w c"]) -> Float[Array, " f"]:
        gradient = jacobian_features(NETS[ntk.net].apply, params, image[None])[0]
        if len(gradient) > ntk.sketch:
            gradient = jax.ops.segment_sum(gradient * drawn.signs, drawn.buckets, ntk.sketch)
        return gradient

    return unit_norm(jax.lax.map(one, images))
