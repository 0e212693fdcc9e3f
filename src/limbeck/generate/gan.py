"""GAN and DP-GAN: the baselines of G-PATE, on its networks.

One discriminator learns from all records. In a GAN it does so as it likes, and there is no privacy.
In DP-GAN (Xie et al. 2018) it descends noisy sums of clipped gradients of Poisson-sampled records;
what it then knows, and the generator that learns from it, is post-processing.

**Guarantee** of DP-GAN. Each step of the discriminator is a Gaussian event, Poisson sampled, in
which a record has norm at most `clip`; the class counts are one Laplace event. Their composition is
(ε, δ)-DP. A GAN has none.
"""

import functools
import math
from collections.abc import Callable
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.generate.g_pate import laplace_counts, saved, shape_for, shares_of
from limbeck.measure.contributions.counts import CLASS_COUNTS, ClassCounts
from limbeck.measure.contributions.critic import GRADIENT, CriticGradient
from limbeck.measure.rows import read
from limbeck.method import Method, setting
from limbeck.models import discriminators, generators, sampling
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.models.generators import Generator
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Entry
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Generated


class Adversarial(Method):
    """What the two methods have in common."""

    records: int = setting(
        default=10_000, meaning="Number of records in the bundle; more can be drawn later."
    )
    steps: int = setting(default=1000, meaning="Training steps of the generator.")
    critic_steps: int = setting(
        default=1, meaning="Steps of the discriminator before each of the generator."
    )
    batch: int = setting(default=64, meaning="Synthetic records in a step.")
    learning_rate: float = setting(default=1e-3, meaning="Rate of Adam, for both networks.")
    latent_dim: int = setting(default=10, meaning="Dimension of the generator's input.")
    discriminator: Literal["small", "conv", "paper"] = setting(
        default="small", meaning="Network of the discriminator, for images; see g-pate."
    )
    sampling_rate: float = setting(
        default=0.01, meaning="Chance of each record to be in a batch of the discriminator.", most=1
    )

    command: ClassVar = "generate"
    docs: ClassVar = "docs/g_pate.md"

    def _bound(self) -> float:
        """The norm to which the gradient of a record is clipped."""
        return math.inf

    def run(self, private: HasSchema, run: Run) -> Generated:
        """The generated records and their generator."""
        schema, classes = private.schema, len(private.schema.classes)
        rows = read(private, run).kept()
        counts = run.sum(rows, ClassCounts(classes), purpose=CLASS_COUNTS)
        critic = CriticGradient(self._discriminator_for(schema), Clip(bound=self._bound()))
        expected_batch = self.sampling_rate * max(counts.sum(), 1.0)

        def gradient(weights: Weights) -> NDArray[np.float64]:
            return run.sum(rows, critic, weights, purpose=GRADIENT) / expected_batch

        shares = shares_of(counts, 1.0)
        net, key = self._play(schema, gradient, shares, run)
        generator = saved(net, shape_for(schema, self.latent_dim), shares, key)
        x, labels = sampling.draw(schema, generator, self.records, run.entropy)
        return Generated.of(
            method=self, schema=schema, x=x, labels=labels, generator=generator, **run.made()
        )

    def _play(
        self,
        schema: Schema,
        gradient: Callable[[Weights], NDArray[np.float64]],
        shares: list[float],
        run: Run,
    ) -> tuple[Generator, PRNGKeyArray]:
        """The game: the discriminator and the generator in turn.

        `gradient` is the mean gradient of the discriminator's loss over records.
        """
        critic = self._discriminator_for(schema)
        start, other, key = jax.random.split(jax.random.key(run.key_data()), 3)
        net = generators.net_for(schema, shape_for(schema, self.latent_dim), start)
        weights = critic.init(other)
        optimiser = _adam(self.learning_rate)
        state = optimiser.init(eqx.filter(net, eqx.is_array))
        critic_state = optimiser.init(weights)
        for step in range(self.steps):
            run.progress("train", step, self.steps)
            codes = self._codes(jax.random.fold_in(key, step), shares)
            for _ in range(self.critic_steps):
                of_records = jnp.asarray(gradient(weights), jnp.float32)
                weights, critic_state = _criticise(
                    critic, optimiser, weights, critic_state, net, codes, of_records
                )
            net, state = _improve(critic, optimiser, net, state, weights, codes)
        return net, jax.random.fold_in(key, self.steps)

    def _discriminator_for(self, schema: Schema) -> Discriminator:
        return discriminators.for_schema(schema, self.discriminator)

    def _codes(self, key: PRNGKeyArray, shares: list[float]) -> Float[Array, "n i"]:
        """Noise, and classes as often as they occur."""
        noise, label = jax.random.split(key)
        chosen = jax.random.choice(label, len(shares), (self.batch,), p=jnp.asarray(shares))
        drawn = jax.random.normal(noise, (self.batch, self.latent_dim))
        return generators.codes_for(drawn, jnp.eye(len(shares))[chosen])

    def _needs(self, schema: Schema) -> Needs:
        network = self._discriminator_for(schema)
        steps = self.steps * self.critic_steps
        return Needs(
            memory=4e8 + 100 * discriminators.size(network),
            seconds=10 + 0.02 * self.steps,
            memory_per_record=4 * schema.width,
            seconds_per_record=steps * self.sampling_rate * 10 * discriminators.size(network) / 1e9,
        )


class GAN(Adversarial):
    """Generate without privacy. A baseline: its result must not be published."""

    name: ClassVar = "gan"
    summary: ClassVar = "a generator against a discriminator, the baseline without privacy"
    guarantee: ClassVar = "none"
    paper: ClassVar = "Goodfellow et al., Generative Adversarial Nets, NIPS 2014"
    private: ClassVar = False

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """Sums without noise."""
        counts = Entry(purpose=CLASS_COUNTS, draws=1, noise_multiplier=None)
        gradients = Entry(
            purpose=GRADIENT,
            draws=self.steps * self.critic_steps,
            noise_multiplier=None,
            sampling_probability=self.sampling_rate,
        )
        return Plan(settled=(counts, gradients), needs=self._needs(schema))


class DPGAN(Adversarial):
    """Generate with a discriminator that learns privately."""

    clip: float = setting(
        default=1.0, meaning="Norm to which the discriminator's gradients are clipped."
    )
    class_epsilon: float = setting(default=0.01, meaning="ε of the class counts, by Laplace noise.")

    name: ClassVar = "dp-gan"
    summary: ClassVar = "a generator against a discriminator that learns by noisy gradients"
    guarantee: ClassVar = (
        "(ε, δ)-DP by Poisson-sampled Gaussian draws, and Laplace noise on class counts"
    )
    paper: ClassVar = "Xie et al., Differentially Private Generative Adversarial Network, 2018"

    def _bound(self) -> float:
        return self.clip

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """Poisson-sampled gradients beside the class counts."""
        assert budget is not None
        gradients = Measurement(
            purpose=GRADIENT,
            draws=self.steps * self.critic_steps,
            sampling_probability=self.sampling_rate,
        )
        counts = laplace_counts(budget, self.class_epsilon)
        return Plan(measurements=(gradients,), settled=(counts,), needs=self._needs(schema))


@functools.lru_cache
def _adam(rate: float) -> optax.GradientTransformation:
    """The same object for the same settings, so that nothing is compiled again."""
    return optax.adam(rate, b1=0.5)


@eqx.filter_jit
def _criticise(
    discriminator: Discriminator,
    optimiser: optax.GradientTransformation,
    weights: Weights,
    state: optax.OptState,
    net: Generator,
    codes: Float[Array, "n i"],
    of_records: Float[Array, " p"],
) -> tuple[Weights, optax.OptState]:
    """One step of the discriminator: −log D of records, by the critic, −log(1 − D) of others."""
    synthetic = net(codes)[0]

    labels = codes[:, -weights[-1][1].shape[0] :]
    flat, shaped = ravel_pytree(weights)

    def loss(flat: Float[Array, " p"]) -> Float[Array, ""]:
        logits = discriminator.logits(shaped(flat), discriminator.preprocess(synthetic), labels)
        return jnp.mean(jax.nn.softplus(logits))

    gradient = shaped(jax.grad(loss)(flat) + of_records)
    updates, state = optimiser.update(gradient, state)
    return optax.apply_updates(weights, updates), state


@eqx.filter_jit
def _improve(
    discriminator: Discriminator,
    optimiser: optax.GradientTransformation,
    net: Generator,
    state: optax.OptState,
    weights: Weights,
    codes: Float[Array, "n i"],
) -> tuple[Generator, optax.OptState]:
    """One step of the generator: −log D of what it makes."""
    labels = codes[:, -weights[-1][1].shape[0] :]

    def loss(net: Generator) -> Float[Array, ""]:
        inputs = discriminator.preprocess(net(codes)[0])
        return jnp.mean(jax.nn.softplus(-discriminator.logits(weights, inputs, labels)))

    updates, state = optimiser.update(eqx.filter_grad(loss)(net), state)
    return eqx.apply_updates(net, updates), state
