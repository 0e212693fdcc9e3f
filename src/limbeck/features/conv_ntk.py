"""The empirical NTK of a network that sees one coordinate at a time, by outer products.

The `cnn_2l` of DP-NTK: a convolution over the D columns of a table with kernels of one column, so
that the same w channels are made of every number alone, then two fully connected layers. For the
sum of its logits, not trained,

    h_dk = x_d u_k + b_k,   r = relu(h) flattened,   g = Wᵀr + s,   f = Σ_o (Vᵀ relu(g) + t)_o,
    ε = (Σ_o V[:, o]) ∘ 1[g > 0],   δ_dk = (W ε)_dk ∘ 1[h_dk > 0],

the gradients are an outer product for W, and sums over the columns for the convolution, of which
there are only 2w:

    ∂W = r εᵀ,   ∂s = ε,   ∂u_k = Σ_d x_d δ_dk,   ∂b_k = Σ_d δ_dk,   ∂V = relu(g) 1ᵀ,   ∂t = 1.

The columns of ∂V are all alike, so one of them, times √c, has the same inner products. The norm is

    ‖φ‖² = ‖∂u‖² + ‖∂b‖² + ‖ε‖² (‖r‖² + 1) + c (‖relu(g)‖² + 1),

and a weighted sum over records is one matrix product a layer.

References
----------
Yang et al. 2023 (DP-NTK), Table 5; Mohamadi, Bae & Sutherland 2022 (sum of logits).
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap, Weigh


class Parameters(NamedTuple):
    """u and b of the convolution, W and s of the hidden layer, V of the last."""

    channels: Float[Array, " k"]
    channel_bias: Float[Array, " k"]
    hidden: Float[Array, "dk w"]
    hidden_bias: Float[Array, " w"]
    out: Float[Array, "w c"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvNTK(FeatureMap):
    """Gradients of an untrained network with `channels` a column and a hidden layer of `width`.

    Examples
    --------
    >>> ConvNTK(dimension=14, channels=30, width=200).size  # adult, Table 5
    84461
    """

    dimension: int
    channels: int = 30
    width: int = 200
    logits: int = 10
    seed: int = 0

    @property
    def size(self) -> int:
        """All parameters, those of the last layer once."""
        hidden = (self.dimension * self.channels + 1) * self.width
        return 2 * self.channels + hidden + self.width + 1

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """One record after another; for few records, because it is as large as it looks."""

        def one(record: Float[Array, " d"]) -> Float[Array, " f"]:
            return self.total(record[None], lambda norms: 1 / norms)

        return jax.lax.map(one, x)

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Σ_l w_l φ(x_l), by matrix products."""
        u, b, hidden, s, out = (part.astype(x.dtype) for part in self._parameters)
        h = x[:, :, None] * u + b
        r = jax.nn.relu(h).reshape(len(x), -1)
        g = r @ hidden + s
        last = jax.nn.relu(g)
        epsilon = jnp.where(g > 0, out.sum(axis=1), 0)
        delta = jnp.where(h > 0, (epsilon @ hidden.T).reshape(h.shape), 0)
        by_u, by_b = jnp.sum(x[:, :, None] * delta, axis=1), jnp.sum(delta, axis=1)

        squares = _square(by_u) + _square(by_b) + _square(epsilon) * (_square(r) + 1)
        w = weigh(jnp.sqrt(squares + self.logits * (_square(last) + 1)))
        weighted, copies = w[:, None] * epsilon, math.sqrt(self.logits)
        of_hidden = [(r.T @ weighted).ravel(), weighted.sum(axis=0)]
        of_last = [copies * (w @ last), copies * w.sum(keepdims=True)]
        return jnp.concatenate([w @ by_u, w @ by_b, *of_hidden, *of_last])

    @functools.cached_property
    def _parameters(self) -> Parameters:
        """Uniform within ±1/√inputs, weights and biases, as PyTorch has it; always float32."""
        flat = self.dimension * self.channels
        shapes = [
            ((self.channels,), 1),
            ((self.channels,), 1),
            ((flat, self.width), flat),
            ((self.width,), flat),
            ((self.width, self.logits), self.width),
        ]
        with jax.ensure_compile_time_eval():
            keys = jax.random.split(jax.random.key(self.seed), len(shapes))
            return Parameters(
                *(
                    jax.random.uniform(key, shape, jnp.float32, -1, 1) / math.sqrt(inputs)
                    for key, (shape, inputs) in zip(keys, shapes, strict=True)
                )
            )


def _square(x: Float[Array, "n f"]) -> Float[Array, " n"]:
    return jnp.sum(x**2, axis=1)
