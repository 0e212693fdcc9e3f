"""GAN and DP-GAN: the baselines of G-PATE, on its networks.

One discriminator learns from all records. In a GAN it does so as it likes, and there is no privacy.
In DP-GAN (Xie et al. 2018) it descends noisy sums of clipped gradients of Poisson-sampled records;
what it then knows, and the generator that learns from it, is post-processing.

**Guarantee** of DP-GAN. Each step of the discriminator is a Gaussian event, Poisson sampled, in
which a record has norm at most `clip`; the class counts are one Laplace event. Their composition is
(ε, δ)-DP. A GAN has none.
"""

import abc
import dataclasses
import functools
from typing import Literal, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import Described, Schema
from limbeck.errors import UserError
from limbeck.generate.g_pate import saved, shape_for, shares_of
from limbeck.generate.settings import check_settings
from limbeck.measure.critic import GRADIENT, ExactCritic, NoisyCritic
from limbeck.measure.votes import COUNTS
from limbeck.models import discriminators, sampling
from limbeck.models import generators as nets
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.models.generators import Generator as Net
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Entry, Ledger
from limbeck.privacy.noise import Entropy, entropy
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle, Generated


class Critic(Protocol):
    """What a generator's opponent asks of the records."""

    def __call__(self, weights: Weights) -> NDArray[np.float64]:
        """The gradient of the discriminator's loss over records."""
        ...

    def class_counts(self) -> NDArray[np.float64]:
        """How many records there are of each class, or about."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adversarial(abc.ABC):
    """What the two have in common.

    Attributes
    ----------
    records : how many records the bundle holds; more can be drawn from its generator.
    steps : of the generator; `rounds` of the discriminator before each.
    batch : made-up records a step.
    learning_rate : of Adam, for both.
    code : the number of random numbers that a record is made of.
    discriminator : see `GPATE`.
    """

    records: int = 10_000
    steps: int = 1000
    rounds: int = 1
    batch: int = 64
    learning_rate: float = 1e-3
    code: int = 10
    discriminator: Literal["small", "conv", "paper"] = "small"

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """As in `METHODS`."""

    def __post_init__(self) -> None:
        check_settings(self)

    def _play(
        self,
        schema: Schema,
        critic: Critic,
        rate: float | None,
        source: Entropy,
        progress: Progress,
    ) -> tuple[Net, list[float], PRNGKeyArray]:
        """The game: the discriminator and the generator in turn.

        The critic's gradient is a mean over records; or with a sampling `rate` a sum over a sample,
        which is divided by its expected size, as the counts have it.
        """
        counts = critic.class_counts()
        shares = shares_of(counts, 1.0)
        scale = 1.0 if rate is None else 1 / (rate * max(counts.sum(), 1.0))
        net_of = self._discriminator_for(schema)
        start, other, key = jax.random.split(
            jax.random.key(int.from_bytes(source.bytes(4), "little")), 3
        )
        net = nets.net_for(schema, shape_for(schema, self.code), start)
        weights = net_of.init(other)
        optimiser = _adam(self.learning_rate)
        state = optimiser.init(eqx.filter(net, eqx.is_array))
        critic_state = optimiser.init(weights)
        for step in range(self.steps):
            progress("train", step, self.steps)
            codes = self._codes(jax.random.fold_in(key, step), shares)
            for _ in range(self.rounds):
                real = jnp.asarray(scale * critic(weights), jnp.float32)
                weights, critic_state = _criticise(
                    net_of, optimiser, weights, critic_state, net, codes, real
                )
            net, state = _improve(net_of, optimiser, net, state, weights, codes)
        return net, shares, jax.random.fold_in(key, self.steps)

    def _discriminator_for(self, schema: Schema) -> Discriminator:
        return discriminators.for_schema(schema, self.discriminator)

    def _codes(self, key: PRNGKeyArray, shares: list[float]) -> Float[Array, "n i"]:
        """Noise, and classes as often as they occur."""
        noise, label = jax.random.split(key)
        chosen = jax.random.choice(label, len(shares), (self.batch,), p=jnp.asarray(shares))
        drawn = jax.random.normal(noise, (self.batch, self.code))
        return nets.codes_for(drawn, jnp.eye(len(shares))[chosen])

    def _bundled(
        self,
        schema: Schema,
        played: tuple[Net, list[float], PRNGKeyArray],
        budget: Budget | None,
        ledger: Ledger,
        source: Entropy,
    ) -> Bundle:
        net, shares, key = played
        generator = saved(net, shape_for(schema, self.code), shares, key)
        x, labels = sampling.draw(schema, generator, self.records, source)
        return Generated.of(
            method=self,
            schema=schema,
            x=x,
            labels=labels,
            generator=generator,
            budget=budget,
            ledger=ledger,
            seeded=source.seeded,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GAN(Adversarial):
    """Generate without privacy. A baseline: its result must not be published."""

    name = "gan"

    def fit(
        self,
        private: Described,
        budget: Budget | None = None,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> Bundle:
        """The generated records. A budget is refused, because nothing would keep to it."""
        if budget is not None:
            raise UserError("gan has no privacy, so it takes no budget; use g-pate")
        schema, source = private.schema, entropy(seed)
        looks = self.steps * self.rounds
        ledger = Ledger(
            Entry(purpose=purpose, draws=draws, noise_multiplier=None)
            for purpose, draws in ((COUNTS, 1), (GRADIENT, looks))
        )
        critic = ExactCritic(
            private,
            self._discriminator_for(schema),
            batch=self.batch,
            ledger=ledger,
            entropy=source,
            progress=progress,
        )
        played = self._play(schema, critic, None, source, progress)
        return self._bundled(schema, played, None, ledger, source)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPGAN(Adversarial):
    """Generate with a discriminator that learns privately.

    Attributes
    ----------
    sampling_rate : the chance of each record to be in a batch of the discriminator.
    clip : the norm to which its gradients are clipped.
    class_epsilon : for the class counts, by Laplace noise.
    """

    sampling_rate: float = 0.01
    clip: float = 1.0
    class_epsilon: float = 0.01

    name = "dp-gan"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampling_rate > 1:
            raise UserError(f"--sampling-rate is a probability, not {self.sampling_rate:g}")

    def fit(
        self,
        private: Described,
        budget: Budget,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> Bundle:
        """The generated records, their generator and the ledger."""
        schema, source = private.schema, entropy(seed)
        progress("calibrate", 0, 0)
        counts = Entry(
            purpose=COUNTS,
            draws=1,
            noise_multiplier=budget.adjacency.records_changed / self.class_epsilon,
            mechanism="laplace",
        )
        steps = Measurement(
            purpose=GRADIENT,
            draws=self.steps * self.rounds,
            sampling_probability=self.sampling_rate,
        )
        ledger = Ledger(calibrate([steps], budget, settled=[counts]))
        critic = NoisyCritic(
            private,
            self._discriminator_for(schema),
            clip=Clip(bound=self.clip),
            sampling_probability=self.sampling_rate,
            ledger=ledger,
            entropy=source,
            progress=progress,
        )
        try:
            played = self._play(schema, critic, self.sampling_rate, source, progress)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
        return self._bundled(schema, played, budget, ledger, source)


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
    net: Net,
    codes: Float[Array, "n i"],
    of_records: Float[Array, " p"],
) -> tuple[Weights, optax.OptState]:
    """One step of the discriminator: −log D of records, by the critic, −log(1 − D) of others."""
    fakes = net(codes)[0]

    labels = codes[:, -weights[-1][1].shape[0] :]
    flat, shaped = ravel_pytree(weights)

    def loss(flat: Float[Array, " p"]) -> Float[Array, ""]:
        logits = discriminator.logits(shaped(flat), discriminator.preprocess(fakes), labels)
        return jnp.mean(jax.nn.softplus(logits))

    gradient = shaped(jax.grad(loss)(flat) + of_records)
    updates, state = optimiser.update(gradient, state)
    return optax.apply_updates(weights, updates), state


@eqx.filter_jit
def _improve(
    discriminator: Discriminator,
    optimiser: optax.GradientTransformation,
    net: Net,
    state: optax.OptState,
    weights: Weights,
    codes: Float[Array, "n i"],
) -> tuple[Net, optax.OptState]:
    """One step of the generator: −log D of what it makes."""
    labels = codes[:, -weights[-1][1].shape[0] :]

    def loss(net: Net) -> Float[Array, ""]:
        seen = discriminator.preprocess(net(codes)[0])
        return jnp.mean(jax.nn.softplus(-discriminator.logits(weights, seen, labels)))

    updates, state = optimiser.update(eqx.filter_grad(loss)(net), state)
    return eqx.apply_updates(net, updates), state
