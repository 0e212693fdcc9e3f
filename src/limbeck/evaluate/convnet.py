"""The ConvNet of Table 3 of DP-KIP-ScatterNet, trained on the records, tested on real ones.

Three blocks of a 3×3 convolution with 128 filters, instance normalisation, ReLU and average pooling
over 2×2, and a linear layer. SGD with momentum 0.9, weight decay 5e-4, and a rate that falls to 0
along a cosine. Pictures are moved, turned and scaled a little at random, and not mirrored: a
mirrored digit is no digit.

A network that is trained on a few distilled points does much worse than kernel ridge regression on
them: points are made for their kernel. That is what this evaluator is here to show.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.errors import UserError
from limbeck.evaluate.metrics import of_scores
from limbeck.evaluate.records import Score
from limbeck.evaluate.task import Task
from limbeck.progress import Progress, silent

BLOCKS = 3
TESTED = 250  # records at a time


class Training(NamedTuple):
    """How the network is made and trained; the same for all records."""

    width: int = 128
    steps: int = 500
    batch: int = 64
    rate: float = 0.02
    augment: bool = True


FAST = Training(width=32)


class ConvNet(eqx.Module):
    """Pictures (n, height, width, channels) to one score a class each.

    Channels last: XLA's convolutions are two to three times as fast on CPUs that way round.
    """

    filters: list[Float[Array, "3 3 i o"]]
    scales: list[Float[Array, " o"]]
    shifts: list[Float[Array, " o"]]
    head: eqx.nn.Linear

    def __init__(
        self, shape: tuple[int, int, int], classes: int, width: int, key: PRNGKeyArray
    ) -> None:
        height, across, channels = shape
        keys = jax.random.split(key, BLOCKS + 1)
        draw = jax.nn.initializers.he_normal()
        inputs = [channels, *[width] * (BLOCKS - 1)]
        self.filters = [draw(k, (3, 3, i, width)) for k, i in zip(keys, inputs, strict=False)]
        self.scales = [jnp.ones(width) for _ in inputs]
        self.shifts = [jnp.zeros(width) for _ in inputs]
        left = max(height >> BLOCKS, 1) * max(across >> BLOCKS, 1)
        self.head = eqx.nn.Linear(width * left, classes, key=keys[-1])

    def __call__(self, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
        """Scores; the largest names the class."""
        for block in zip(self.filters, self.scales, self.shifts, strict=True):
            x = _block(x, *block)
        return jax.vmap(self.head)(x.reshape(len(x), -1))


def _block(
    x: Float[Array, "n h w c"],
    filters: Float[Array, "3 3 c o"],
    scale: Float[Array, " o"],
    shift: Float[Array, " o"],
) -> Float[Array, "n p q o"]:
    """Convolution, instance normalisation, ReLU, means over 2×2."""
    layout = ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=layout)
    x = jax.nn.standardize(x, axis=(1, 2), epsilon=1e-5) * scale + shift
    return _halved(jax.nn.relu(x))


def _halved(x: Float[Array, "n h w c"]) -> Float[Array, "n p q c"]:
    """Means over 2×2, or over what there is of a picture that is smaller."""
    n, height, across, channels = x.shape
    down, right = min(height, 2), min(across, 2)
    x = x[:, : height // down * down, : across // right * right]
    x = x.reshape(n, height // down, down, across // right, right, channels)
    return jnp.mean(x, axis=(2, 4))


def hard(task: Task) -> list[Score]:
    """Trained on the class of each record, by cross entropy."""
    return _evaluate(task, "convnet", soft=False)


def soft(task: Task) -> list[Score]:
    """Trained on the weights of the points, which may be negative: by squared error."""
    return _evaluate(task, "convnet-soft", soft=True)


def _evaluate(task: Task, name: str, *, soft: bool) -> list[Score]:
    if not task.bundle.schema.is_image:
        raise UserError(f"'{name}' is for pictures; a table has {', '.join(('logreg', 'tabular'))}")
    training = FAST if task.fast else Training()
    shape, labels = task.bundle.schema.image_shape, np.eye(task.classes, dtype=np.float32)
    found = []
    for on, (x, classes) in task.sets:
        y = task.bundle.y_soft if soft and on == "release" else labels[classes]
        net = train(x, y, shape, training, task.seed, soft=soft, progress=task.progress)
        scores = predict(net, task.test_rows.x, shape)
        found += of_scores(name, scores, task.test_rows.y, on, len(x))
    return found


def train(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    shape: tuple[int, int, int],
    training: Training,
    seed: int,
    *,
    soft: bool = False,
    progress: Progress = silent,
) -> ConvNet:
    """The network after `steps` batches drawn at random; `y` has one weight a class."""
    start, order = jax.random.split(jax.random.key(seed))
    net = ConvNet(shape, y.shape[1], training.width, start)
    state = _optimiser(training).init(eqx.filter(net, eqx.is_array))
    pictures, rng = _pictures(x, shape), np.random.default_rng(seed)
    for step in range(training.steps):
        progress("train", step, training.steps)
        chosen = rng.choice(len(x), training.batch, replace=len(x) < training.batch)
        key = jax.random.fold_in(order, step)
        net, state = _step(
            net, state, jnp.asarray(pictures[chosen]), jnp.asarray(y[chosen]), key, training, soft
        )
    return net


def _optimiser(training: Training) -> optax.GradientTransformation:
    rate = optax.cosine_decay_schedule(training.rate, training.steps)
    return optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(rate, momentum=0.9))


@eqx.filter_jit
def _step(
    net: ConvNet,
    state: optax.OptState,
    x: Float[Array, "n h w c"],
    y: Float[Array, "n k"],
    key: PRNGKeyArray,
    training: Training,
    soft: bool,
) -> tuple[ConvNet, optax.OptState]:
    if training.augment:
        x = jax.vmap(_moved)(x, jax.random.split(key, len(x)))

    def loss(net: ConvNet) -> Float[Array, ""]:
        if soft:
            return jnp.mean(jnp.sum((net(x) - y) ** 2, axis=1))
        return jnp.mean(optax.softmax_cross_entropy(net(x), y))

    gradient = eqx.filter_grad(loss)(net)
    updates, state = _optimiser(training).update(gradient, state, eqx.filter(net, eqx.is_array))
    return eqx.apply_updates(net, updates), state


def _moved(x: Float[Array, "h w c"], key: PRNGKeyArray) -> Float[Array, "h w c"]:
    """Turned by up to 10 degrees, scaled by up to a tenth, and moved by up to a fourteenth."""
    turn, scale, shift = jax.random.split(key, 3)
    angle = jax.random.uniform(turn, minval=-1, maxval=1) * jnp.pi / 18
    zoom = jax.random.uniform(scale, (2,), minval=0.9, maxval=1.1)
    size = jnp.array(x.shape[:2], x.dtype)
    offset = jax.random.uniform(shift, (2,), minval=-1 / 14, maxval=1 / 14) * size
    centre = (size - 1) / 2
    rows, columns = jnp.meshgrid(*(jnp.arange(side) for side in x.shape[:2]), indexing="ij")
    places = jnp.stack([rows, columns]) - centre[:, None, None]
    rotation = jnp.array([[jnp.cos(angle), -jnp.sin(angle)], [jnp.sin(angle), jnp.cos(angle)]])
    there = jnp.einsum("ij,jhw->ihw", rotation, places) * zoom[:, None, None]
    there = there + (centre + offset)[:, None, None]

    def sampled(channel: Float[Array, "h w"]) -> Float[Array, "h w"]:
        return jax.scipy.ndimage.map_coordinates(channel, list(there), 1, mode="nearest")

    return jax.vmap(sampled, in_axes=-1, out_axes=-1)(x)


def predict(
    net: ConvNet, x: NDArray[np.float32], shape: tuple[int, int, int]
) -> NDArray[np.float32]:
    """One score a class for each record."""
    found = []
    for start in range(0, len(x), TESTED):
        piece = _pictures(x[start : start + TESTED], shape)
        padded = np.zeros((TESTED, *piece.shape[1:]), np.float32)
        padded[: len(piece)] = piece
        found.append(np.asarray(_forward(net, jnp.asarray(padded)))[: len(piece)])
    return np.concatenate(found)


@eqx.filter_jit
def _forward(net: ConvNet, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
    return net(x)


def _pictures(x: NDArray[np.float32], shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """In their shape, and about zero."""
    return (x.reshape(-1, *shape) - np.float32(0.5)) * 2
