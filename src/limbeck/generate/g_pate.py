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

import functools
import math
import os
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.errors import UserError
from limbeck.features.inputs import ImageInputs
from limbeck.features.quantiles import QuantileMap
from limbeck.generate.training import FREEZING
from limbeck.measure.contributions.counts import CLASS_COUNTS, ClassCounts
from limbeck.measure.rows import read
from limbeck.measure.teachers import CHUNK_BYTES, Query, TeacherConfig, Teachers
from limbeck.measure.votes import LARGEST, VOTES, noisy_answers
from limbeck.method import Method, setting
from limbeck.models import discriminators, generators, sampling
from limbeck.models.discriminators import Discriminator
from limbeck.models.generators import COLOUR, ROWS, Generator, GeneratorConfig, Statistics
from limbeck.models.state import GeneratorState
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Entry
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Generated

# Channels of the maps of grey images.
GREY = (16, 8)
# The number of teachers, unless it is given.
FEWEST, MOST = 2000, 16_000
# Latent codes of each class for one update of the student.
STUDIED = 50
# Multiplications a second and core that small networks side by side were seen to reach.
SPEED = 1.5e10
# A weight and the two moments of Adam, in float32.
BYTES_A_WEIGHT = 12


# What makes it the paper's algorithm.
PAPER: dict[str, Any] = {
    "votes_on": "records",
    "dimensions": 10,
    "keep_teachers": True,
    "updates": 1,
    "bins": 10,
    "clip": 1e-4,
    "aggregate": "argmax",
    "threshold": 0.5,
}


class GPATE(Method):
    """Generate under differential privacy, from votes.

    Examples
    --------
    >>> GPATE(teachers=2000, **PAPER).threshold
    0.5
    """

    records: int = setting(
        default=10_000, meaning="Number of records in the bundle; more can be drawn later."
    )
    teachers: int | None = setting(
        default=None,
        meaning=(
            "Number of teachers, each of which sees a disjoint share of the records; by "
            "default 8000/ε for images, within 2000 and 16000, and 2000 for tables."
        ),
    )
    steps: int = setting(default=60, meaning="How often the teachers vote.")
    batch: int = setting(default=50, meaning="Synthetic records in a step.")
    updates: int = setting(default=3, meaning="Updates of each teacher in a step.")
    keep_teachers: bool = setting(
        default=False,
        meaning="Whether teachers keep their weights from step to step, as in the paper.",
    )
    votes_on: Literal["classes", "records"] = setting(
        default="classes",
        meaning="What votes are on: the records of a class together, or each record by itself.",
    )
    variation: int = setting(
        default=2,
        meaning="For classes, on how many latent coordinates their movement may depend.",
        least=0,
    )
    dimensions: int = setting(
        default=64, meaning="k of Algorithm 1: numbers to which a change is projected."
    )
    bins: int = setting(default=3, meaning="B of Algorithm 1: bins of a vote.", least=2, most=255)
    clip: float | Literal["normalise"] = setting(
        default="normalise",
        meaning="c of Algorithm 1: bound of a vote; normalise scales each teacher's first.",
    )
    aggregate: Literal["mean", "argmax"] = setting(
        default="mean",
        meaning="How votes become an answer: their mean, or the commonest bin (Algorithm 3).",
    )
    threshold: float = setting(
        default=0.0,
        meaning="Share of teachers that must agree, else the answer is zero.",
        least=0,
        most=1,
    )
    consensus_share: float = setting(
        default=0.05,
        meaning="Share of the noise budget for the comparison with the threshold.",
        below=1,
    )
    class_epsilon: float = setting(default=0.01, meaning="ε of the class counts, by Laplace noise.")
    step_size: float = setting(
        default=0.1, meaning="How far records move in the first step if all teachers agree."
    )
    momentum: float = setting(default=0.8, meaning="Momentum of these moves.", least=0, below=1)
    student_steps: int = setting(
        default=5, meaning="Gradient steps of the student after each vote."
    )
    learning_rate: float = setting(default=0.01, meaning="Rate of the student's Adam.")
    teacher_rate: float = setting(default=1e-3, meaning="Rate of the teachers' Adam.")
    latent_dim: int = setting(default=10, meaning="Dimension of the generator's input.")
    discriminator: Literal["small", "conv", "paper"] = setting(
        default="small",
        meaning=(
            "Network of the teachers, for images: small and fully connected, small with a "
            "convolution, or the paper's, of 1.6 million weights."
        ),
    )

    name: ClassVar = "g-pate"
    command: ClassVar = "generate"
    summary: ClassVar = "a generator taught by the noisy votes of many discriminators"
    guarantee: ClassVar = "(ε, δ)-DP by Gaussian noise on votes, Laplace noise on class counts"
    paper: ClassVar = (
        "Long et al., G-PATE: Scalable Differentially Private Data Generator, NeurIPS 2021"
    )
    docs: ClassVar = "docs/g_pate.md"

    def check(self) -> None:
        """Votes cannot depend on more latent coordinates than there are."""
        if self.variation > self.latent_dim:
            raise UserError(
                f"variation must be at most latent_dim, {self.latent_dim}, not {self.variation}"
            )

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """Laplace noise for the class counts, and the least Gaussian noise for votes beside it."""
        assert budget is not None
        votes = [Measurement(purpose=VOTES, draws=self.steps)]
        if self.threshold:
            share = self.consensus_share / (1 - self.consensus_share)
            votes.append(Measurement(purpose=LARGEST, draws=self.steps, share=share))
        return Plan(
            measurements=tuple(votes),
            settled=(laplace_counts(budget, self.class_epsilon),),
            needs=self._needs(schema, budget),
        )

    def run(self, private: HasSchema, run: Run) -> Generated:
        """The generated records and their generator, by Algorithm 2."""
        assert run.budget is not None
        schema, classes = private.schema, len(private.schema.classes)
        student = Student(self, schema, jax.random.key(run.key_data()))

        # Behind the wall: the teachers, and what they have in common.
        rows = read(private, run)
        teachers = Teachers(
            rows,
            classes,
            self._discriminator(schema),
            self._teacher_config(schema, run.budget),
            secret=run.entropy.bytes(32),
            key=jax.random.key(run.key_data()),
        )
        counts = run.sum(rows, ClassCounts(classes), purpose=CLASS_COUNTS)
        for step in range(self.steps):
            run.progress("train", step, self.steps)
            query = student.asks(step)
            answers = noisy_answers(
                run, teachers, query, step, aggregate=self.aggregate, threshold=self.threshold
            )
            # In front of it: the student.
            student.learns(step, answers, query)
        generator = student.saved(shares_of(counts, 1 / self.class_epsilon))
        x, labels = sampling.draw(schema, generator, self.records, run.entropy)
        return Generated.of(
            method=self, schema=schema, x=x, labels=labels, generator=generator, **run.made()
        )

    def _needs(self, schema: Schema, budget: Budget) -> Needs:
        """By the number of weights, and of multiplications."""
        network, config = self._discriminator(schema), self._teacher_config(schema, budget)
        each = BYTES_A_WEIGHT * discriminators.size(network)
        stored = config.teachers * each if config.keep else 0
        activations = 8 * self.batch * network.activations_per_record
        # Forwards and backwards: two batches an update, and one for the votes.
        passes = self.batch * (6 * config.updates + 3) * self.steps * config.teachers
        return Needs(
            memory=3e8 + stored + max(CHUNK_BYTES, activations) + 4 * each,
            seconds=10 + passes * network.macs / (SPEED * (os.cpu_count() or 1)),
            memory_per_record=8 * schema.width,
            seconds_per_record=1e-5,
            advice="use fewer teachers, discriminator=small or keep_teachers=false",
        )

    def _discriminator(self, schema: Schema) -> Discriminator:
        return discriminators.for_schema(schema, self.discriminator)

    def _teacher_config(self, schema: Schema, budget: Budget) -> TeacherConfig:
        return TeacherConfig(
            teachers=self.teachers or _teachers_for(schema, budget),
            updates=self.updates,
            keep=self.keep_teachers,
            learning_rate=self.teacher_rate,
            bins=self.bins,
            clip=None if self.clip == "normalise" else self.clip,
        )


def laplace_counts(budget: Budget, epsilon: float) -> Entry:
    """The planned class counts: Laplace noise that by itself is `epsilon`-DP."""
    multiplier = budget.adjacency.records_changed / epsilon
    return Entry(purpose=CLASS_COUNTS, draws=1, noise_multiplier=multiplier, mechanism="laplace")


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
        self._shape = shape_for(schema, settings.latent_dim)
        self._net = generators.net_for(schema, self._shape, start)
        self._optimiser = _adam(settings.learning_rate, settings.steps * settings.student_steps)
        self._state = self._optimiser.init(eqx.filter(self._net, eqx.is_array))
        self._moving = jnp.zeros(())
        self._basis = _fixed_basis(settings, schema)
        self._asked = self._codes(start, 0)

    def _codes(self, key: PRNGKeyArray, n: int) -> tuple[Float[Array, "n k"], Float[Array, "n c"]]:
        """Fresh noise, and as many of each class, in turn."""
        classes = len(self._schema.classes)
        return noise_and_labels(key, n, self._settings.latent_dim, classes)

    def asks(self, step: int) -> Query:
        """Lines 2 and 3 of Algorithm 2, and the projection of Algorithm 1."""
        key = jax.random.fold_in(self._key, 2 * step)
        noise, labels = self._codes(key, self._settings.batch)
        synthetic = forward(self._net, generators.codes_for(noise, labels))
        basis = self._basis
        if basis is None:
            basis = _random_basis(self._settings, self._schema.width, jax.random.fold_in(key, 1))
        self._asked = noise, labels
        return Query(synthetic, labels, self._weights(noise, labels), basis)

    def _weights(self, noise: Float[Array, "n k"], labels: Float[Array, "n c"]) -> Array:
        """W: one column a record; or of each class, for 1 and for numbers of the code."""
        if self._settings.votes_on == "records":
            return jnp.eye(len(noise))
        by_code = jnp.concatenate(
            [jnp.ones((len(noise), 1)), noise[:, : self._settings.variation]], 1
        )
        return (labels[:, :, None] * by_code[:, None]).reshape(len(noise), -1)

    def learns(self, step: int, answers: NDArray[np.float64], query: Query) -> None:
        """Lines 12 to 15: back to perturbations x̂ − x, and some steps of Eq. 2.

        In units in which a record's numbers in [0, 1] are spread out over k directions.
        """
        settings, before = self._settings, self._net
        wanted = jnp.asarray(answers, jnp.float32) @ query.column_projection.T
        by_class = settings.votes_on == "classes"
        if by_class:  # classes are the same in every step; records are not
            self._moving = wanted = settings.momentum * self._moving + wanted
        falling = (1 + math.cos(math.pi * step / settings.steps)) / 2
        wanted = (
            settings.step_size * falling * math.sqrt(wanted.shape[1] / answers.shape[1]) * wanted
        )
        noise, labels = self._asked
        for study in range(settings.student_steps):
            if by_class:  # what is said of a class holds for other latent codes as well
                key = jax.random.fold_in(self._key, 2 * step + 1)
                noise, labels = self._codes(
                    jax.random.fold_in(key, study), STUDIED * labels.shape[1]
                )
            codes, change = (
                generators.codes_for(noise, labels),
                self._weights(noise, labels) @ wanted,
            )
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
    net: Generator, shape: GeneratorConfig, shares: list[float], key: PRNGKeyArray
) -> GeneratorState:
    """With the normalisations frozen."""
    classes = len(shares)
    codes = generators.codes_for(
        *noise_and_labels(key, FREEZING * classes, shape.latent_dim, classes)
    )
    config = {**shape._asdict(), "shares": shares, "places": QuantileMap().to_json()}
    return GeneratorState(config, generators.to_arrays(net, statistics(net, codes)))


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
def forward(net: Generator, codes: Float[Array, "n i"]) -> Float[Array, "n d"]:
    """Records."""
    return net(codes)[0]


@eqx.filter_jit
def statistics(net: Generator, codes: Float[Array, "n i"]) -> Statistics:
    """Of a batch."""
    return net(codes)[1]


@functools.lru_cache
def _adam(rate: float, steps: int) -> optax.GradientTransformation:
    """The same object for the same settings, so that nothing is compiled again."""
    return optax.adam(optax.cosine_decay_schedule(rate, steps))


@eqx.filter_jit
def _learn(
    optimiser: optax.GradientTransformation,
    net: Generator,
    state: optax.OptState,
    before: Generator,
    codes: Float[Array, "n i"],
    change: Float[Array, "n d"],
    basis: Float[Array, "d k"] | None,
) -> tuple[Generator, optax.OptState]:
    """A step towards x̂ = x + Δx; of x, what no vote is ever on is left out."""
    wanted = before(codes)[0]
    if basis is not None:
        wanted = wanted @ basis @ basis.T
    wanted = jnp.clip(wanted + change, 0, 1)

    def loss(net: Generator) -> Float[Array, ""]:
        return jnp.mean((net(codes)[0] - wanted) ** 2)

    updates, state = optimiser.update(eqx.filter_grad(loss)(net), state)
    return eqx.apply_updates(net, updates), state
