"""The empirical NTK of a fully connected network in full, by outer products.

For f = Σ_o (W_{L+1}ᵀ r_L + b)_o with r_0 = x, h_l = W_lᵀ r_{l−1} + b_l and r_l = relu(h_l), not
trained, the gradient with respect to the parameters of a layer is an outer product of what goes in
and what comes back:

    ∂W_l = r_{l−1} δ_lᵀ,   ∂b_l = δ_l,   δ_L = (Σ_o W_{L+1}[:, o]) ∘ 1[h_L > 0],
    δ_l = (W_{l+1} δ_{l+1}) ∘ 1[h_l > 0],   ∂W_{L+1} = r_L 1ᵀ,   ∂b_{L+1} = 1.

The columns of ∂W_{L+1} are all alike, so one of them, times √c, has the same inner products. The
norm is

    ‖φ‖² = Σ_l ‖δ_l‖² (‖r_{l−1}‖² + 1) + c (‖r_L‖² + 1),

and a weighted sum over records is one matrix product a layer, where each of 60 000 records alone
would have 600 000 coordinates. Of few records not even the sum is needed. Its inner product with a
mean M is Σ_l w_l r_{l−1}ᵀ M δ_l, whose derivative is the same M δ_l, because δ is constant between
the kinks; and its squared norm is a sum over pairs, ⟨δ, δ'⟩ (⟨r, r'⟩ + 1) a layer.

`fc_1l` and `fc_2l` of DP-NTK are one and two hidden layers.

References
----------
Yang et al. 2023 (DP-NTK), §3 and Table 5; Mohamadi, Bae & Sutherland 2022 (sum of logits).
"""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from limbeck.features.base import FeatureMap, Weigh

Layer = tuple[Float[Array, "i o"], Float[Array, " o"]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DenseNTK(FeatureMap):
    """Gradients of an untrained network with hidden layers of these `widths`.

    Examples
    --------
    >>> DenseNTK(dimension=784, widths=(800,)).size
    628801
    """

    dimension: int
    widths: tuple[int, ...] = (800,)
    logits: int = 10
    seed: int = 0

    @property
    def size(self) -> int:
        """All parameters, those of the last layer once."""
        sides = [self.dimension, *self.widths]
        hidden = sum(i * o + o for i, o in itertools.pairwise(sides))
        return hidden + self.widths[-1] + 1

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n f"]:
        """One record after another; for few records, because it is as large as it looks."""

        def one(record: Float[Array, " d"]) -> Float[Array, " f"]:
            return self.total(record[None], lambda norms: 1 / norms)

        return jax.lax.map(one, x)

    def total(self, x: Float[Array, "n d"], weigh: Weigh) -> Float[Array, " f"]:
        """Σ_l w_l φ(x_l), by matrix products."""
        inputs, deltas, last = self._pass(x)
        w, parts = weigh(self._norms(inputs, deltas, last)), []
        for entering, delta in zip(inputs, deltas, strict=True):
            weighted = w[:, None] * delta
            parts += [(entering.T @ weighted).ravel(), weighted.sum(axis=0)]
        copies = math.sqrt(self.logits)
        return jnp.concatenate([*parts, copies * (w @ last), copies * w.sum(keepdims=True)])

    def compared(
        self, x: Float[Array, "n d"], mean: Float[Array, " f"], weigh: Weigh
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """By pairs of records, as long as they are fewer numbers than the parameters."""
        if len(x) * sum([self.dimension, *self.widths, self.widths[-1]]) > self.size:
            return super().compared(x, mean, weigh)
        inputs, deltas, last = self._pass(x)
        w, copies = weigh(self._norms(inputs, deltas, last)), math.sqrt(self.logits)
        pairs, start = self.logits * (last @ last.T + 1), 0
        along = copies * (last @ mean[-1 - self.widths[-1] : -1] + mean[-1])
        for r, delta in zip(inputs, deltas, strict=True):
            pairs += (delta @ delta.T) * (r @ r.T + 1)
            end = start + r.shape[1] * delta.shape[1]
            matrix = mean[start:end].reshape(r.shape[1], -1)
            start = end + delta.shape[1]
            along += jnp.sum(r * (delta @ matrix.T), axis=1) + delta @ mean[end:start]
        return w @ pairs @ w, w @ along

    def _norms(
        self,
        inputs: list[Float[Array, "n i"]],
        deltas: list[Float[Array, "n o"]],
        last: Float[Array, "n w"],
    ) -> Float[Array, " n"]:
        squares = self.logits * (jnp.sum(last**2, axis=1) + 1)
        for entering, delta in zip(inputs, deltas, strict=True):
            squares += jnp.sum(delta**2, axis=1) * (jnp.sum(entering**2, axis=1) + 1)
        return jnp.sqrt(squares)

    def _pass(
        self, x: Float[Array, "n d"]
    ) -> tuple[list[Float[Array, "n i"]], list[Float[Array, "n o"]], Float[Array, "n w"]]:
        """r_{l−1} and δ_l of each hidden layer, and r_L."""
        *hidden, (out, _) = [(w.astype(x.dtype), b.astype(x.dtype)) for w, b in self.layers]
        inputs, open_ = [], []
        r = x
        for w, b in hidden:
            inputs.append(r)
            h = r @ w + b
            open_.append(h > 0)
            r = jax.nn.relu(h)
        delta = jnp.where(open_[-1], out.sum(axis=1), 0)
        deltas = [delta]
        for (w, _), passed in zip(hidden[:0:-1], open_[-2::-1], strict=True):
            delta = jnp.where(passed, delta @ w.T, 0)
            deltas.insert(0, delta)
        return inputs, deltas, r

    @functools.cached_property
    def layers(self) -> list[Layer]:
        """Uniform within ±1/√inputs, weights and biases, as PyTorch has it.

        Always float32: in another precision the same key draws other numbers.
        """
        sides = [self.dimension, *self.widths, self.logits]
        with jax.ensure_compile_time_eval():
            keys = jax.random.split(jax.random.key(self.seed), (len(sides) - 1, 2))
            return [
                (
                    jax.random.uniform(of_w, (i, o), jnp.float32, -1, 1) / math.sqrt(i),
                    jax.random.uniform(of_b, (o,), jnp.float32, -1, 1) / math.sqrt(i),
                )
                for (of_w, of_b), i, o in zip(keys, sides, sides[1:], strict=False)
            ]
