"""The CNN of G-PATE (Appendix A.6), trained on generated pictures, tested on real ones.

Two convolutions with 32 and 64 kernels, ReLU, and dropout on all layers. What the paper leaves open
is as is usual for networks of this kind: kernels of 3×3, the largest of 2×2 pixels after each, a
hidden layer of 128, a quarter of the numbers dropped, Adam at 1e-3. Pictures are taken as they are.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.evaluate.metrics import of_scores
from limbeck.evaluate.records import Score
from limbeck.evaluate.task import Task
from limbeck.progress import Progress, silent

KERNELS, HIDDEN, DROPPED = (32, 64), 128, 0.25
# Batches, and records in each; batches with `--fast`.
STEPS, BATCH, FAST = 2000, 100, 500
RATE = 1e-3
TESTED = 500  # records at a time


class CNN(eqx.Module):
    """Pictures (n, height, width, channels) to one score a class each."""

    filters: list[Float[Array, "3 3 i o"]]
    shifts: list[Float[Array, " o"]]
    hidden: eqx.nn.Linear
    head: eqx.nn.Linear

    def __init__(self, shape: tuple[int, int, int], classes: int, key: PRNGKeyArray) -> None:
        height, width, channels = shape
        keys = jax.random.split(key, 4)
        draw, sides = jax.nn.initializers.he_normal(), (channels, *KERNELS)
        self.filters = [draw(keys[i], (3, 3, sides[i], sides[i + 1])) for i in range(2)]
        self.shifts = [jnp.zeros(side) for side in KERNELS]
        self.hidden = eqx.nn.Linear(
            -(-height // 4) * -(-width // 4) * KERNELS[1], HIDDEN, key=keys[2]
        )
        self.head = eqx.nn.Linear(HIDDEN, classes, key=keys[3])

    def __call__(
        self, x: Float[Array, "n h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "n k"]:
        """Scores; with a key, after dropping some numbers of each layer."""
        keys = [None] * 3 if key is None else list(jax.random.split(key, 3))
        for filters, shift, its in zip(self.filters, self.shifts, keys, strict=False):
            x = _dropped(_largest(jax.nn.relu(_convolved(x, filters) + shift)), its)
        x = jax.nn.relu(jax.vmap(self.hidden)(x.reshape(len(x), -1)))
        return jax.vmap(self.head)(_dropped(x, keys[2]))


def _convolved(
    x: Float[Array, "n h w i"], filters: Float[Array, "3 3 i o"]
) -> Float[Array, "n h w o"]:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=layout)


def _largest(x: Float[Array, "n h w c"]) -> Float[Array, "n p q c"]:
    """Of every 2×2 pixels, or of what there is of them at an edge; none is below zero."""
    n, height, width, channels = x.shape
    x = jnp.pad(x, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))
    return x.reshape(n, -(-height // 2), 2, -(-width // 2), 2, channels).max(axis=(2, 4))


def _dropped(x: Float[Array, "..."], key: PRNGKeyArray | None) -> Float[Array, "..."]:
    if key is None:
        return x
    kept = jax.random.bernoulli(key, 1 - DROPPED, x.shape)
    return jnp.where(kept, x / (1 - DROPPED), 0)


def evaluate(task: Task) -> list[Score]:
    """Trained on the class of each record, by cross entropy."""
    if not task.bundle.schema.is_image:
        raise UserError("'cnn' is for pictures; a table has logreg, tabular")
    shape, steps, found = task.bundle.schema.image_shape, FAST if task.fast else STEPS, []
    for on, (x, y) in task.sets:
        net = train(x, y, shape, task.classes, steps, task.seed, task.progress)
        scores = predict(net, task.test_rows.x, shape)
        found += of_scores("cnn", scores, task.test_rows.y, on, len(x))
    return found


def train(
    x: NDArray[np.float32],
    y: NDArray[np.integer],
    shape: tuple[int, int, int],
    classes: int,
    steps: int,
    seed: int,
    progress: Progress = silent,
) -> CNN:
    """The network after `steps` batches drawn at random."""
    start, dropping = jax.random.split(jax.random.key(seed))
    net, rng = CNN(shape, classes, start), np.random.default_rng(seed)
    state = optax.adam(RATE).init(eqx.filter(net, eqx.is_array))
    for step in range(steps):
        progress("train", step, steps)
        chosen = rng.choice(len(x), BATCH, replace=len(x) < BATCH)
        pictures, labels = jnp.asarray(x[chosen].reshape(-1, *shape)), jnp.asarray(y[chosen])
        net, state = _step(net, state, pictures, labels, jax.random.fold_in(dropping, step))
    return net


@eqx.filter_jit
def _step(
    net: CNN,
    state: optax.OptState,
    x: Float[Array, "n h w c"],
    y: Int[Array, " n"],
    key: PRNGKeyArray,
) -> tuple[CNN, optax.OptState]:
    def loss(net: CNN) -> Float[Array, ""]:
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(net(x, key), y))

    updates, state = optax.adam(RATE).update(eqx.filter_grad(loss)(net), state)
    return eqx.apply_updates(net, updates), state


def predict(net: CNN, x: NDArray[np.float32], shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """One score a class for each record."""
    padded = np.concatenate([x, np.zeros((-len(x) % TESTED, x.shape[1]), x.dtype)])
    pieces = padded.reshape(-1, TESTED, *shape)
    return np.concatenate([_forward(net, jnp.asarray(piece)) for piece in pieces])[: len(x)]


@eqx.filter_jit
def _forward(net: CNN, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
    return net(x)
