"""Two convolutional classifiers of the papers, and the loop that trains them.

`ConvNet` (Table 3 of DP-KIP-ScatterNet) has three blocks of a 3×3 convolution with 128 filters,
instance normalisation, ReLU and average pooling over 2×2, and a linear layer. It is trained by SGD
with momentum 0.9, weight decay 5e-4 and cosine decay of the rate. Images are shifted, turned and
scaled a little at random, and not mirrored, because a mirrored digit is not a digit.

`CNN` (Appendix A.6 of G-PATE) has two convolutions with 32 and 64 kernels, ReLU, and dropout on all
layers. The paper leaves the rest open: kernels are 3×3, with max pooling over 2×2 after each, a
hidden layer of 128, a dropout rate of a quarter, and Adam at 1e-3.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.progress import Progress, silent

BLOCKS = 3
KERNELS, HIDDEN, DROPPED = (32, 64), 128, 0.25
TESTED = 250  # records at a time


class Training(NamedTuple):
    """A network and how it is trained; the same for all records. `width` is that of `ConvNet`."""

    network: Literal["convnet", "cnn"] = "convnet"
    width: int = 128
    steps: int = 500
    batch: int = 64
    rate: float = 0.02
    augment: bool = True


class ConvNet(eqx.Module):
    """Images (n, height, width, channels) in [0, 1] to one score per class.

    Channels come last: XLA's convolutions are two to three times as fast on CPUs in this layout.
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

    def __call__(
        self, x: Float[Array, "n h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "n k"]:
        """The scores, the largest of which names the class; there is no dropout."""
        x = 2 * x - 1
        for block in zip(self.filters, self.scales, self.shifts, strict=True):
            x = _block(x, *block)
        return jax.vmap(self.head)(x.reshape(len(x), -1))


def _block(
    x: Float[Array, "n h w c"],
    filters: Float[Array, "3 3 c o"],
    scale: Float[Array, " o"],
    shift: Float[Array, " o"],
) -> Float[Array, "n p q o"]:
    """A convolution, instance normalisation, ReLU and means over 2×2 pixels."""
    x = jax.nn.standardize(_convolved(x, filters), axis=(1, 2), epsilon=1e-5) * scale + shift
    return _halved(jax.nn.relu(x))


def _halved(x: Float[Array, "n h w c"]) -> Float[Array, "n p q c"]:
    """Means over 2×2 pixels, or over the one row or column of a smaller image."""
    n, height, across, channels = x.shape
    down, right = min(height, 2), min(across, 2)
    x = x[:, : height // down * down, : across // right * right]
    x = x.reshape(n, height // down, down, across // right, right, channels)
    return jnp.mean(x, axis=(2, 4))


class CNN(eqx.Module):
    """Images (n, height, width, channels) in [0, 1] to one score per class."""

    filters: list[Float[Array, "3 3 i o"]]
    shifts: list[Float[Array, " o"]]
    hidden: eqx.nn.Linear
    head: eqx.nn.Linear

    def __init__(self, shape: tuple[int, int, int], classes: int, key: PRNGKeyArray) -> None:
        height, width, channels = shape
        keys = jax.random.split(key, 4)
        draw, widths = jax.nn.initializers.he_normal(), (channels, *KERNELS)
        self.filters = [draw(keys[i], (3, 3, widths[i], widths[i + 1])) for i in range(2)]
        self.shifts = [jnp.zeros(width) for width in KERNELS]
        self.hidden = eqx.nn.Linear(
            -(-height // 4) * -(-width // 4) * KERNELS[1], HIDDEN, key=keys[2]
        )
        self.head = eqx.nn.Linear(HIDDEN, classes, key=keys[3])

    def __call__(
        self, x: Float[Array, "n h w c"], key: PRNGKeyArray | None = None
    ) -> Float[Array, "n k"]:
        """The scores; a key turns on dropout."""
        keys = [None] * 3 if key is None else list(jax.random.split(key, 3))
        for filters, shift, dropping in zip(self.filters, self.shifts, keys, strict=False):
            x = _dropped(_largest(jax.nn.relu(_convolved(x, filters) + shift)), dropping)
        x = jax.nn.relu(jax.vmap(self.hidden)(x.reshape(len(x), -1)))
        return jax.vmap(self.head)(_dropped(x, keys[2]))


def _convolved(
    x: Float[Array, "n h w i"], filters: Float[Array, "3 3 i o"]
) -> Float[Array, "n h w o"]:
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=layout)


def _largest(x: Float[Array, "n h w c"]) -> Float[Array, "n p q c"]:
    """The maximum of every 2×2 pixels, or of those inside at an edge; none is below zero."""
    n, height, width, channels = x.shape
    x = jnp.pad(x, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))
    return x.reshape(n, -(-height // 2), 2, -(-width // 2), 2, channels).max(axis=(2, 4))


def _dropped(x: Float[Array, "..."], key: PRNGKeyArray | None) -> Float[Array, "..."]:
    if key is None:
        return x
    kept = jax.random.bernoulli(key, 1 - DROPPED, x.shape)
    return jnp.where(kept, x / (1 - DROPPED), 0)


Network = ConvNet | CNN


def train(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    shape: tuple[int, int, int],
    training: Training,
    seed: int,
    *,
    soft: bool = False,
    progress: Progress = silent,
) -> Network:
    """The network after `steps` random batches; `y` has one weight per class.

    The loss is the cross entropy, or with `soft` the squared error, as weights may be negative.
    """
    start, order = jax.random.split(jax.random.key(seed))
    net = _untrained(shape, y.shape[1], training, start)
    state = _optimiser(training).init(eqx.filter(net, eqx.is_array))
    images, rng = x.reshape(-1, *shape), np.random.default_rng(seed)
    for step in range(training.steps):
        progress("train", step, training.steps)
        chosen = rng.choice(len(x), training.batch, replace=len(x) < training.batch)
        batch = jnp.asarray(images[chosen]), jnp.asarray(y[chosen])
        net, state = _step(net, state, *batch, jax.random.fold_in(order, step), training, soft)
    return net


def _untrained(
    shape: tuple[int, int, int], classes: int, training: Training, key: PRNGKeyArray
) -> Network:
    if training.network == "cnn":
        return CNN(shape, classes, key)
    return ConvNet(shape, classes, training.width, key)


def _optimiser(training: Training) -> optax.GradientTransformation:
    if training.network == "cnn":
        return optax.adam(training.rate)
    rate = optax.cosine_decay_schedule(training.rate, training.steps)
    return optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(rate, momentum=0.9))


@eqx.filter_jit
def _step(
    net: Network,
    state: optax.OptState,
    x: Float[Array, "n h w c"],
    y: Float[Array, "n k"],
    key: PRNGKeyArray,
    training: Training,
    soft: bool,
) -> tuple[Network, optax.OptState]:
    moving, dropping = jax.random.split(key)
    if training.augment:
        x = jax.vmap(_moved)(x, jax.random.split(moving, len(x)))

    def loss(net: Network) -> Float[Array, ""]:
        scores = net(x, dropping)
        if soft:
            return jnp.mean(jnp.sum((scores - y) ** 2, axis=1))
        return jnp.mean(optax.softmax_cross_entropy(scores, y))

    gradient = eqx.filter_grad(loss)(net)
    updates, state = _optimiser(training).update(gradient, state, eqx.filter(net, eqx.is_array))
    return eqx.apply_updates(net, updates), state


def _moved(x: Float[Array, "h w c"], key: PRNGKeyArray) -> Float[Array, "h w c"]:
    """The image turned by up to 10 degrees, scaled by up to 1/10 and shifted by up to 1/14."""
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
    net: Network, x: NDArray[np.float32], shape: tuple[int, int, int]
) -> NDArray[np.float32]:
    """One score per class for each record."""
    padded = np.pad(x, ((0, -len(x) % TESTED), (0, 0))).reshape(-1, TESTED, *shape)
    return np.concatenate([_forward(net, jnp.asarray(piece)) for piece in padded])[: len(x)]


@eqx.filter_jit
def _forward(net: Network, x: Float[Array, "n h w c"]) -> Float[Array, "n k"]:
    return net(x)
