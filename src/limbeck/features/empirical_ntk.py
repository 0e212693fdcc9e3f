"""The empirical neural tangent kernel: gradients of an untrained network as features.

For a network f with random initial parameters θ (§2.3 of "Differentially Private Kernel Inducing
Points using features from ScatterNets"; the sum over the logits f_o is DP-NTK's):

    φ(x) = ∂/∂θ Σ_o f_o(θ, x)                        k(x, x') = ⟨φ(x), φ(x')⟩

With one hidden layer, h = W₁ᵀx + b₁, a_j = Σ_o W₂[j, o] and d = a ∘ 1[h > 0], the gradient is an
outer product, and its kernel needs no gradient at all (c is the number of logits):

    ∂W₁ = x dᵀ     ∂b₁ = d     ∂W₂ = relu(h) 1ᵀ     ∂b₂ = 1
    k(x, x') = ⟨d, d'⟩ (⟨x, x'⟩ + 1) + c (⟨relu(h), relu(h')⟩ + 1)

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
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from limbeck.features import nets
from limbeck.features.base import FeatureMap, unit_norm
from limbeck.features.nets import Images, Logits, Params, Shape

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
class EmpiricalNTK(FeatureMap):
    """Gradients of an untrained `net` on images of `shape`, sketched to `sketch` coordinates.

    There is no sketch where the network has no more than `sketch` parameters.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> features = EmpiricalNTK(shape=(16, 16, 1), net="lenet", sketch=512)
    >>> features(jnp.ones((3, 256))).shape
    (3, 512)
    """

    shape: Shape
    net: Literal["lenet", "resnet18", "fully-connected"]
    seed: int = 0
    sketch: int = 4096

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


def empirical_ntk(shape: Shape) -> EmpiricalNTK:
    """The paper's choice: LeNet for grey images, ResNet18 for colour.

    Images of fewer than 16 pixels a side, and rows of a table as images of shape (1, 1, D), are
    given to the fully connected network.

    Examples
    --------
    >>> empirical_ntk((28, 28, 1)).net, empirical_ntk((1, 1, 14)).net
    ('lenet', 'fully-connected')
    """
    height, width, channels = shape
    if min(height, width) < LEAST_SIDE:
        return EmpiricalNTK(shape=shape, net="fully-connected")
    return EmpiricalNTK(shape=shape, net="lenet" if channels == 1 else "resnet18")


def jacobian_features(apply: Apply, params: Params, images: Images) -> Float[Array, "n p"]:
    """∂/∂θ Σ_o f_o(θ, x) for each image x and any network, in the order of `ravel_pytree`."""

    def logits(params: Params, image: Float[Array, "h w c"]) -> Float[Array, ""]:
        return apply(params, image[None]).sum()

    return jax.vmap(lambda image: ravel_pytree(jax.grad(logits)(params, image))[0])(images)


def kernel_by_products(apply: Apply, params: Params, x: Images, s: Images) -> Float[Array, "n m"]:
    """k(x, s) = J(x) J(s)ᵀ without J(x), for any network.

    One gradient an image of `s`, and along it one directional derivative of the logits of all `x`.
    """

    def column(image: Float[Array, "h w c"]) -> Float[Array, " n"]:
        direction = jax.grad(lambda params: apply(params, image[None]).sum())(params)
        _, along = jax.jvp(lambda params: apply(params, x), (params,), (direction,))
        return along.sum(axis=1)

    return jax.lax.map(column, s).T


def one_hidden_layer_jacobian(params: Params, images: Images) -> Float[Array, "n p"]:
    """`jacobian_features` of the fully connected network, in closed form."""
    x, hidden, d = _one_hidden_layer(params, images)
    n, logits = len(x), params["w2"].shape[1]
    by_w1 = (x[:, :, None] * d[:, None, :]).reshape(n, -1)
    by_w2 = jnp.repeat(hidden, logits, axis=1)
    return jnp.concatenate([d, jnp.ones((n, logits), x.dtype), by_w1, by_w2], axis=1)


def one_hidden_layer_kernel(params: Params, x: Images, s: Images) -> Float[Array, "n m"]:
    """`one_hidden_layer_jacobian` of `x` times that of `s`, without either."""
    (x, hidden_x, d_x), (s, hidden_s, d_s) = (_one_hidden_layer(params, i) for i in (x, s))
    logits = params["w2"].shape[1]
    return (d_x @ d_s.T) * (x @ s.T + 1) + logits * (hidden_x @ hidden_s.T + 1)


def _one_hidden_layer(
    params: Params, images: Images
) -> tuple[Float[Array, "n d"], Float[Array, "n w"], Float[Array, "n w"]]:
    """The records as rows, relu(h), and d = a ∘ 1[h > 0]."""
    x = images.reshape(len(images), -1)
    h = x @ params["w1"] + params["b1"]
    return x, jax.nn.relu(h), jnp.where(h > 0, params["w2"].sum(axis=1), 0)


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
