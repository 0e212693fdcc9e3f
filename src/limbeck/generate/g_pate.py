"""G-PATE: a generator taught by the private votes of many discriminators.

"Scalable Differentially Private Data Generator via Private Aggregation of Teacher Discriminators",
Algorithms 1 to 3. The records are shared out among teachers, discriminators that learn to tell the
student's records from their own. In each step they say how the student's records should change to
look real (Eq. 1); that is projected to a few numbers, on which they vote; and from the noisy result
the student learns (Eq. 2).

**Guarantee.** The generator is a function of noisy counts of votes, one Gaussian event a step (and
one of the largest counts, with a threshold), of noisy class counts, one Laplace event, and of
noise. See `measure.votes` for what one record can do. The composition of all events is (ε, δ)-DP.
It does not depend on what the votes were: a query that is not answered costs what an answer does.

Where the default differs from the paper, at the same budget:

- Votes are on the records of a class together: how they should move in each direction, and how that
  depends on the code they were made from. There are fewer queries, and teachers agree more on them.
- Teachers start from the same public weights, and in every step anew. So they differ by their
  records alone, and none remembers what the student made long ago.
- Directions are low frequencies, or the columns of a table, instead of random ones.
- Votes are down, no opinion or up, and their noisy mean is taken, which tells a narrow majority
  from a large one. The paper takes the commonest of ten bins, where it is common enough.
- A teacher that has no record of a class has no opinion on it.

`PAPER` has the settings with which it is the paper's algorithm.
"""

import dataclasses
import functools
import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import Described, Schema
from limbeck.errors import UserError
from limbeck.features.inputs import ImageInputs
from limbeck.features.places import Places
from limbeck.generate.needs import Needs
from limbeck.generate.settings import check_settings
from limbeck.generate.training import FREEZING
from limbeck.measure.teachers import Batch, Schooling
from limbeck.measure.votes import CONSENSUS, COUNTS, VOTES, NoisyVotes
from limbeck.models import discriminators, sampling
from limbeck.models import generators as nets
from limbeck.models.discriminators import Discriminator
from limbeck.models.generators import COLOUR, ROWS, GeneratorConfig, Statistics
from limbeck.models.generators import Generator as Net
from limbeck.models.state import GeneratorState
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Entry, Ledger
from limbeck.privacy.noise import entropy
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle, Generated

# Channels of the maps of grey pictures.
GREY = (16, 8)
# Teachers, unless they are told.
FEWEST, MOST = 2000, 16_000
# Codes of each class for one update of the student.
STUDIED = 50


# What makes it the paper's algorithm.
PAPER: dict[str, Any] = {
    "votes_on": "records",
    "dimensions": 10,
    "memory": 1.0,
    "updates": 1,
    "bins": 10,
    "clip": 1e-4,
    "aggregate": "argmax",
    "threshold": 0.5,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GPATE:
    """Generate under differential privacy, from votes.

    Attributes
    ----------
    records : how many records the bundle holds; more can be drawn from its generator.
    teachers : into how many parts the records are shared out. More of them drown the noise; fewer
        know more each. If not given, 8000/ε for pictures, within 2000 and 16 000, and 2000 for
        tables.
    steps : how often the teachers vote; the noise of a vote grows with its square root.
    batch : made-up records a step.
    updates : of each teacher in a step, at no cost but time.
    memory : how much of what a teacher has learned it keeps from one step to the next.
    votes_on : what votes are on: the records of a class together, or each record by itself.
    variation : for classes, on how many numbers of the code their movement may depend.
    dimensions : k of Algorithm 1, the numbers to which a perturbation is projected.
    bins, clip, aggregate, threshold : of Algorithms 1 and 3; see `measure.votes`. The threshold is
        a share of the teachers.
    consensus_share : of the noise budget, for the comparison with the threshold.
    class_epsilon : for the class counts, by Laplace noise.
    pace, momentum : how far the student moves its records when all teachers agree, in the first
        step; and how much of earlier moves it adds.
    studies, learning_rate : steps that the student takes to move them, of Adam at this rate.
    teacher_rate : of the teachers' Adam.
    code : the number of random numbers that a record is made of.
    discriminator : of the teachers, for pictures: small and fully connected; small with a
        convolution; or the paper's, of 1.6 million weights.
    diagnose : tell the owner, on standard error, how far teachers agreed; that is private.

    Examples
    --------
    >>> GPATE(teachers=2000, **PAPER).threshold
    0.5
    """

    records: int = 10_000
    teachers: int | None = None
    steps: int = 60
    batch: int = 50
    updates: int = 3
    memory: float = 0.0
    votes_on: Literal["classes", "records"] = "classes"
    variation: int = 2
    dimensions: int = 64
    bins: int = 3
    clip: float | Literal["normalise"] = "normalise"
    aggregate: Literal["mean", "argmax"] = "mean"
    threshold: float = 0.0
    consensus_share: float = 0.05
    class_epsilon: float = 0.01
    pace: float = 0.1
    momentum: float = 0.8
    studies: int = 5
    learning_rate: float = 0.01
    teacher_rate: float = 1e-3
    code: int = 10
    discriminator: Literal["small", "conv", "paper"] = "small"
    diagnose: bool = False

    def __post_init__(self) -> None:
        check_settings(self, may_be_zero=("memory", "variation", "threshold", "momentum"))
        for name in ("memory", "threshold", "consensus_share", "momentum"):
            if getattr(self, name) > 1:
                raise UserError(f"--{name.replace('_', '-')} is a share, at most one")
        for name in ("momentum", "consensus_share"):
            if getattr(self, name) == 1:
                raise UserError(f"--{name.replace('_', '-')} must be below one")
        if self.diagnose and self.aggregate != "argmax":
            raise UserError(
                "--diagnose is for --aggregate argmax; of other answers Theorem 7 says nothing"
            )
        if not 2 <= self.bins <= 255:
            raise UserError(f"--bins must lie between 2 and 255, not {self.bins}")
        if self.variation > self.code:
            raise UserError(
                f"--variation must be at most --code, {self.code}, not {self.variation}"
            )

    name = "g-pate"

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
        self.needs(schema, budget).check()
        progress("calibrate", 0, 0)
        ledger = Ledger(self._plan(budget))
        key = jax.random.key(int.from_bytes(source.bytes(4), "little"))
        try:
            # Behind the wall: the teachers, and what they have in common.
            votes = NoisyVotes(
                private,
                self._discriminator(schema),
                self._schooling(schema, budget),
                aggregate=self.aggregate,
                threshold=self.threshold,
                diagnose=self.diagnose,
                ledger=ledger,
                entropy=source,
                progress=progress,
            )
            counts = votes.class_counts()

            # In front of it: the student.
            student = Student(self, schema, key)
            for step in range(self.steps):
                progress("train", step, self.steps)
                batch = student.asks(step)
                student.learns(step, votes(batch), batch)
            votes.tell_owner(budget.delta)
            generator = student.saved(shares_of(counts, 1 / self.class_epsilon))
            x, labels = sampling.draw(schema, generator, self.records, source)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
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

    def _plan(self, budget: Budget) -> tuple[Entry, ...]:
        """Laplace noise for the counts of classes, and the least Gaussian noise beside it."""
        counts = Entry(
            purpose=COUNTS,
            draws=1,
            noise_multiplier=budget.adjacency.records_changed / self.class_epsilon,
            mechanism="laplace",
        )
        plan = [Measurement(purpose=VOTES, draws=self.steps)]
        if self.threshold:
            share = self.consensus_share / (1 - self.consensus_share)
            plan.append(Measurement(purpose=CONSENSUS, draws=self.steps, share=share))
        return calibrate(plan, budget, settled=[counts])

    def needs(self, schema: Schema, budget: Budget) -> Needs:
        """What a run takes, about, in memory and time."""
        schooling = self._schooling(schema, budget)
        return Needs.of(self._discriminator(schema), schooling, self.batch, self.steps)

    def _discriminator(self, schema: Schema) -> Discriminator:
        return discriminators.for_schema(schema, self.discriminator)

    def _schooling(self, schema: Schema, budget: Budget) -> Schooling:
        return Schooling(
            teachers=self.teachers or _teachers_for(schema, budget),
            updates=self.updates,
            memory=self.memory,
            learning_rate=self.teacher_rate,
            bins=self.bins,
            clip=None if self.clip == "normalise" else self.clip,
        )


def _teachers_for(schema: Schema, budget: Budget) -> int:
    """The less may be spent, the more votes it takes to be heard.

    In tables a class may be so rare that more teachers only know less of it.
    """
    if not schema.is_image:
        return FEWEST
    return int(np.clip(round(4 * FEWEST / budget.epsilon), FEWEST, MOST))


def shares_of(counts: NDArray[np.float64], least: float) -> list[float]:
    """Of whole numbers, none below what noise is: a class that is declared is generated."""
    floored = np.maximum(np.rint(counts), least)
    return list(floored / floored.sum())


class Student:
    """The generator, what it asks and how it learns; all of it is public."""

    def __init__(self, settings: GPATE, schema: Schema, key: PRNGKeyArray) -> None:
        self._settings, self._schema = settings, schema
        start, self._key = jax.random.split(key)
        self._shape = shape_for(schema, settings.code)
        self._net = nets.net_for(schema, self._shape, start)
        self._optimiser = _adam(settings.learning_rate, settings.steps * settings.studies)
        self._state = self._optimiser.init(eqx.filter(self._net, eqx.is_array))
        self._moving = jnp.zeros(())
        self._basis = _fixed_basis(settings, schema)

    def _codes(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n k"], Float[Array, "n c"]]:
        """Fresh noise, and as many of each class, in turn."""
        classes = len(self._schema.classes)
        return noise_and_labels(key, n, self._settings.code, classes)

    def asks(self, step: int) -> Batch:
        """Lines 2 and 3 of Algorithm 2, and the projection of Algorithm 1."""
        key = jax.random.fold_in(self._key, 2 * step)
        noise, labels = self._codes(key, self._settings.batch)
        fakes = forward(self._net, nets.codes_for(noise, labels))
        basis = self._basis
        if basis is None:
            basis = _random_basis(self._settings, self._schema.width, jax.random.fold_in(key, 1))
        self._asked = noise, labels
        return Batch(fakes, labels, self._weights(noise, labels), basis)

    def _weights(self, noise: Float[Array, "n k"], labels: Float[Array, "n c"]) -> Array:
        """W: one column a record; or of each class, for 1 and for numbers of the code."""
        if self._settings.votes_on == "records":
            return jnp.eye(len(noise))
        by_code = jnp.concatenate(
            [jnp.ones((len(noise), 1)), noise[:, : self._settings.variation]], 1
        )
        return (labels[:, :, None] * by_code[:, None]).reshape(len(noise), -1)

    def learns(self, step: int, answers: NDArray[np.float64], batch: Batch) -> None:
        """Lines 12 to 15: back to perturbations x̂ − x, and some steps of Eq. 2.

        In units in which a record's numbers in [0, 1] are spread out over k directions.
        """
        settings, before = self._settings, self._net
        wanted = jnp.asarray(answers, jnp.float32) @ batch.basis.T
        if (
            settings.votes_on == "classes"
        ):  # which are the same in every step, where records are not
            self._moving = wanted = settings.momentum * self._moving + wanted
        falling = (1 + math.cos(math.pi * step / settings.steps)) / 2
        wanted = settings.pace * falling * math.sqrt(wanted.shape[1] / answers.shape[1]) * wanted
        noise, labels = self._asked
        for study in range(settings.studies):
            if (
                settings.votes_on == "classes"
            ):  # what is said of a class holds for other codes as well
                key = jax.random.fold_in(self._key, 2 * step + 1)
                noise, labels = self._codes(
                    jax.random.fold_in(key, study), STUDIED * labels.shape[1]
                )
            codes, change = nets.codes_for(noise, labels), self._weights(noise, labels) @ wanted
            self._net, self._state = _learn(
                self._optimiser, self._net, self._state, before, codes, change, self._basis
            )

    def saved(self, shares: list[float]) -> GeneratorState:
        """With the normalisations frozen."""
        key = jax.random.fold_in(self._key, 2 * self._settings.steps)
        return saved(self._net, self._shape, shares, key)


def shape_for(schema: Schema, code: int) -> GeneratorConfig:
    """Of a generator, by what the schema describes."""
    if schema.is_image:
        return GeneratorConfig(code, COLOUR if schema.image_shape[2] > 1 else GREY)
    return GeneratorConfig(code, ROWS)


def noise_and_labels(
    key: PRNGKeyArray, n: int, code: int, classes: int
) -> tuple[Float[Array, "n k"], Float[Array, "n c"]]:
    """Fresh noise, and as many of each class, in turn."""
    return jax.random.normal(key, (n, code)), jnp.eye(classes)[jnp.arange(n) % classes]


def saved(
    net: Net, shape: GeneratorConfig, shares: list[float], key: PRNGKeyArray
) -> GeneratorState:
    """With the normalisations frozen."""
    classes = len(shares)
    codes = nets.codes_for(*noise_and_labels(key, FREEZING * classes, shape.latent_dim, classes))
    config = {**shape._asdict(), "shares": shares, "places": Places().to_json()}
    return GeneratorState(config, nets.to_arrays(net, statistics(net, codes)))


def _fixed_basis(settings: GPATE, schema: Schema) -> Float[Array, "d k"] | None:
    """R where it is always the same: all coordinates if they are few, or the lowest frequencies."""
    if settings.dimensions >= schema.width:
        return jnp.eye(schema.width)
    if settings.votes_on == "records" or not schema.is_image:
        return None
    height, width, channels = schema.image_shape
    order = [(i / height) ** 2 + (j / width) ** 2 for i in range(height) for j in range(width)]
    lowest = np.argsort(np.repeat(order, channels), kind="stable")[: settings.dimensions]
    return jnp.asarray(ImageInputs(shape=schema.image_shape).basis[:, lowest], jnp.float32)


def _random_basis(settings: GPATE, width: int, key: PRNGKeyArray) -> Float[Array, "d k"]:
    """Line 2 of Algorithm 1: independent numbers of variance 1/k."""
    drawn = jax.random.normal(key, (width, settings.dimensions))
    return drawn / math.sqrt(settings.dimensions)


@eqx.filter_jit
def forward(net: Net, codes: Float[Array, "n i"]) -> Float[Array, "n d"]:
    """Records."""
    return net(codes)[0]


@eqx.filter_jit
def statistics(net: Net, codes: Float[Array, "n i"]) -> Statistics:
    """Of a batch."""
    return net(codes)[1]


@functools.lru_cache
def _adam(rate: float, steps: int) -> optax.GradientTransformation:
    """The same object for the same settings, so that nothing is compiled again."""
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


@eqx.filter_jit
def _learn(
    optimiser: optax.GradientTransformation,
    net: Net,
    state: optax.OptState,
    before: Net,
    codes: Float[Array, "n i"],
    change: Float[Array, "n d"],
    basis: Float[Array, "d k"] | None,
) -> tuple[Net, optax.OptState]:
    """A step towards x̂ = x + Δx; of x, what no vote is ever on is left out."""
    wanted = before(codes)[0]
    if basis is not None:
        wanted = wanted @ basis @ basis.T
    wanted = jnp.clip(wanted + change, 0, 1)

    def loss(net: Net) -> Float[Array, ""]:
        return jnp.mean((net(codes)[0] - wanted) ** 2)

    updates, state = optimiser.update(eqx.filter_grad(loss)(net), state)
    return eqx.apply_updates(net, updates), state
