"""Training a generator so that its records have the moments that were measured.

    min over G of  Σ_c w_c ‖ μ̃_c − mean of φ(G(z, c)) over codes z ‖²          (Eq. 6 of DP-NTK)

μ̃_c is the noisy mean of the features of class c. Nothing here is private: it sees noisy numbers,
the schema and fresh noise, and may take as many steps as it likes.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.features.base import FeatureMap
from limbeck.models import generators as nets
from limbeck.models.generators import Generator as Net
from limbeck.models.generators import GeneratorConfig, Statistics
from limbeck.progress import Progress, silent

# Codes by which the normalisations are frozen, for each class.
FREEZING = 500
ADAM = optax.scale_by_adam()


class Descent(NamedTuple):
    """How long, on how many records a class at a time, and how fast at first."""

    steps: int
    per_class: int
    learning_rate: float

    def rates(self) -> NDArray[np.float32]:
        """Of each step; they fall to zero along a cosine."""
        done = np.arange(self.steps) / self.steps
        return (self.learning_rate * (1 + np.cos(np.pi * done)) / 2).astype(np.float32)


class Target(NamedTuple):
    """The noisy means of the features of each class, and how much each class counts."""

    means: NDArray[np.float32]
    weights: NDArray[np.float32]


def train(
    schema: Schema,
    phi: FeatureMap,
    target: Target,
    shape: GeneratorConfig,
    descent: Descent,
    key: PRNGKeyArray,
    progress: Progress = silent,
) -> tuple[Net, Statistics]:
    """The generator, and the statistics that its normalisations are frozen at."""
    start, stream, last = jax.random.split(key, 3)
    net = nets.net_for(schema, shape, start)
    state = ADAM.init(eqx.filter(net, eqx.is_array))
    wanted = jnp.asarray(target.means), jnp.asarray(target.weights)
    for step, rate in enumerate(descent.rates()):
        progress("train", step, descent.steps)
        key = jax.random.fold_in(stream, step)
        net, state = _step(
            net, state, key, jnp.asarray(rate), wanted, phi, shape, descent.per_class
        )
    return net, _frozen(net, last, len(schema.classes), shape)


@eqx.filter_jit
def _step(
    net: Net,
    state: optax.OptState,
    key: PRNGKeyArray,
    rate: Float[Array, ""],
    target: tuple[Float[Array, "c f"], Float[Array, " c"]],
    phi: FeatureMap,
    shape: GeneratorConfig,
    per_class: int,
) -> tuple[Net, optax.OptState]:
    means, weights = target
    codes = _codes(key, len(means), per_class, shape)

    def loss(net: Net) -> Float[Array, ""]:
        records = net(codes)[0].reshape(len(means), per_class, -1)
        return jnp.sum(weights * jax.vmap(lambda x, mean: distance(phi, x, mean))(records, means))

    gradient = eqx.filter_grad(loss)(net)
    updates, state = ADAM.update(gradient, state)
    return eqx.apply_updates(net, jax.tree.map(lambda update: -rate * update, updates)), state


def distance(phi: FeatureMap, x: Float[Array, "n d"], mean: Float[Array, " f"]) -> Float[Array, ""]:
    """‖μ − E φ(x)‖², less ‖μ‖², without bias from so few x.

    The squared norm of a mean over n records is larger than that of the expectation, by as much as
    records differ, over n. Taken as it is, it would reward records that are all alike. So pairs of
    different records are counted only: (‖Σ φ‖² − Σ ‖φ‖²) / n(n − 1).
    """
    lengths = []

    def weigh(norms: Float[Array, " n"]) -> Float[Array, " n"]:
        factors = scale(norms)
        lengths.append(norms * factors)
        return factors

    (square, along), n = phi.compared(x, mean, weigh), len(x)
    pairs = (square - jnp.sum(lengths[0] ** 2)) / (n * max(n - 1, 1))
    return pairs - 2 * along / n


def scale(norms: Float[Array, " n"]) -> Float[Array, " n"]:
    """To norm one, as they were measured.

    Features shorter than that, of rows with shares in place of a choice, are left as they are: they
    are the means of what is drawn.
    """
    return 1 / jnp.maximum(norms, 1)


def _codes(
    key: PRNGKeyArray, classes: int, per_class: int, shape: GeneratorConfig
) -> Float[Array, "n i"]:
    """Fresh noise, and as many of each class, one class after the other."""
    labels = jnp.repeat(jnp.eye(classes), per_class, axis=0)
    noise = jax.random.normal(key, (len(labels), shape.latent_dim))
    return nets.codes_for(noise, labels)


@eqx.filter_jit
def _frozen(net: Net, key: PRNGKeyArray, classes: int, shape: GeneratorConfig) -> Statistics:
    return net(_codes(key, classes, FREEZING, shape))[1]
