"""Teachers: discriminators that each know a part of the records, and vote (Algorithm 2 of G-PATE).

Everything about a teacher is a function of its own records, of the public batch and of public
randomness: no sum, mean or normalisation goes across teachers. A record that comes or goes can
therefore change what one teacher says, and nothing that another says.

Teachers are updated by one compiled step over stacked weights, some of them at a time on each core.
What they all start from is computed once, not by each of them.
"""

import dataclasses
import functools
import hashlib
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8
from numpy.typing import NDArray

from limbeck.batching import CORES, in_blocks, side_by_side
from limbeck.measure.rows import Rows
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.privacy.ledger import NoCopy

# The memory for the activations of the teachers that are updated at a time.
CHUNK_BYTES = 2**25
# The activations of teachers that are multiplied at once should stay in the cache.
CACHED_BYTES = 2**20
AT_A_TIME = 512


class Query(NamedTuple):
    """What the student asks about: synthetic records, and how their perturbations are projected.

    The perturbations Δx [m, d] that a teacher wants are projected on both sides to Wᵀ Δx R, of
    shape [g, k]. Algorithm 1 has W = 1, so that every record is asked about by itself, and a random
    R. All of it is public, and depends on the records through earlier noisy answers only.
    """

    synthetic: Float[Array, "m d"]
    one_hot: Float[Array, "m c"]
    row_projection: Float[Array, "m g"]  # W
    column_projection: Float[Array, "d k"]  # R

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the answer, [g, k]: a teacher casts one vote for each entry."""
        return self.row_projection.shape[1], self.column_projection.shape[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    """How teachers learn and vote.

    Attributes
    ----------
    teachers : the number of teachers.
    updates : how often each teacher is updated in a step.
    learning_rate : the rate of Adam.
    keep : whether teachers keep what they have learned from one step to the next, as in the paper.
        All start from the same public weights; those that keep nothing do so in every step.
    bins : B of Algorithm 1.
    clip : c of Algorithm 1; None scales each row of a teacher's projection to a root mean square of
        two thirds first, and clips at one.
    """

    teachers: int
    updates: int = 1
    learning_rate: float = 1e-3
    keep: bool = False
    bins: int = 3
    clip: float | None = None

    def optimiser(self) -> optax.GradientTransformation:
        """Adam as in Appendix A.6 of the paper."""
        return optax.adam(self.learning_rate, b1=0.5)

    def initial(self, discriminator: Discriminator) -> Weights:
        """The public weights that all teachers start from."""
        return discriminator.init(jax.random.key(0))


class PublicStep(NamedTuple):
    """What is the same for all teachers in a step; all of it is public.

    All teachers start from the same weights, whose predictions carry no information; they are
    subtracted as a baseline.
    """

    initial: Weights
    inputs: Float[Array, "m s"]  # the synthetic records as discriminators take them
    logits: Float[Array, " m"]  # of the initial weights
    slopes: Float[Array, "m k"]  # of these logits, along the projection
    column_projection: Float[Array, "s k"]
    one_hot: Float[Array, "m c"]
    row_projection: Float[Array, "m g"]


class TeacherBatch(NamedTuple):
    """The records that a teacher is shown in a step; or those of several teachers, stacked."""

    inputs: Float[NDArray[np.float32], "*n u m s"]
    logits: Float[NDArray[np.float32], "*n u m"]  # of the initial weights
    known: Float[NDArray[np.float32], "*n m"]  # one where it has a record of that class, else zero


class Teacher(NamedTuple):
    """A teacher's number, weights and state of Adam; or those of several, stacked.

    Teachers that keep nothing have neither weights nor state.
    """

    number: Int[Array, "*n"]
    weights: Any = ()
    state: Any = ()


def teachers_of(rows: int, teachers: int, secret: bytes) -> NDArray[np.int64]:
    """The teacher of each record: a keyed hash of its position and of nothing else.

    **Guarantee.** For a fresh secret the teachers of records are independent draws, which know
    nothing of any record, nor of how many there are. Removing a record moves later ones up, so for
    one secret many may change teacher; but over all secrets, what the others are given is the same
    draws as before. So what is released is, with the record and without it, a mixture over the same
    ways to share out the others, and for each of them one teacher differs. The divergence that
    defines (ε, δ) is jointly convex, so what holds for each way holds for the mixture. So it is
    under replacement, where the new record is given the teacher of the old. It is assumed that a
    row is rounded alike wherever it stands in a block, as a test sees it. The secret is never
    written down.
    """
    assigned = np.empty(rows, np.int64)
    for position in range(rows):
        digest = hashlib.blake2b(position.to_bytes(8, "little"), key=secret, digest_size=8)
        assigned[position] = int.from_bytes(digest.digest(), "little") % teachers
    return assigned


class Teachers(NoCopy):
    """The teachers with their records; `votes` lets them learn for a step, and asks them.

    Records are drawn and gathered outside of what is compiled, so that no compiled shape, and with
    it no rounding, depends on how many records there are.
    """

    def __init__(
        self,
        rows: Rows,
        classes: int,
        discriminator: Discriminator,
        config: TeacherConfig,
        *,
        secret: bytes,
        key: PRNGKeyArray,
    ) -> None:
        self._discriminator, self.config, self._key = discriminator, config, key
        self._assign(rows, classes, secret)
        self._chunks: list[Teacher] = []  # made when the size of a batch is known

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def _assign(self, rows: Rows, classes: int, secret: bytes) -> None:
        """Records as discriminators take them, sorted by teacher and class."""
        n, preprocess = self.config.teachers, functools.partial(_preprocess, self._discriminator)
        parts = [(in_blocks(preprocess, AT_A_TIME, x), labels) for x, labels in rows.parts()]
        labels = np.concatenate([part for _, part in parts])
        place = teachers_of(len(labels), n, secret) * classes + labels
        order = np.argsort(place, kind="stable")
        self._inputs = np.concatenate([part for part, _ in parts])[order]
        self._logits = in_blocks(
            functools.partial(_initial_logits, self._discriminator, self.config),
            AT_A_TIME,
            self._inputs,
            np.eye(classes, dtype=np.float32)[labels[order]],
        )
        count = np.bincount(place, minlength=n * classes)
        self._first = (np.cumsum(count) - count).reshape(n, classes)
        self._count = count.reshape(n, classes)

    def votes(self, query: Query, step: int) -> NDArray[np.uint8]:
        """Update every teacher, then [n, g·k]: the bin of each teacher's answer to each question.

        Private: `measure.votes` counts them, and adds the noise.
        """
        config, key = self.config, jax.random.fold_in(self._key, step)
        if not self._chunks:
            self._chunks = self._untrained(len(query.synthetic))
        uniform = np.asarray(_uniform(key, config.teachers, config.updates, len(query.synthetic)))
        public = _public_step(self._discriminator, config, query)
        labels = np.asarray(query.one_hot).argmax(axis=1)

        def taught(chunk: Teacher) -> tuple[Teacher, UInt8[Array, "t q"]]:
            these = slice(int(chunk.number[0]), int(chunk.number[-1]) + 1)
            batch = self._drawn(uniform[these], these, labels)
            return _step(self._discriminator, config, chunk, batch, public, key)

        results = list(side_by_side(taught, self._chunks))
        self._chunks = [chunk for chunk, _ in results]
        return np.concatenate([np.asarray(cast) for _, cast in results])

    def _untrained(self, records: int) -> list[Teacher]:
        n, chunk = self.config.teachers, chunk_of(self._discriminator, self.config, records)
        numbers = [jnp.arange(at, min(at + chunk, n)) for at in range(0, n, chunk)]
        return [_start(self._discriminator, self.config, i) for i in numbers]

    def _drawn(
        self, uniform: NDArray[np.float32], these: slice, labels: NDArray[np.integer]
    ) -> TeacherBatch:
        """For each synthetic record one of the teacher's own records of that class.

        `uniform` [t, u, m] says which; a teacher without one is given zeros, which count nothing.
        """
        count = self._count[these][:, None, labels]
        among = np.minimum((uniform.astype(np.float64) * count).astype(np.int64), count - 1)
        known = count > 0
        at = np.where(known, self._first[these][:, None, labels] + among, 0)
        if not len(self._inputs):  # no records at all
            shape, width = at.shape, self._inputs.shape[1]
            inputs, logits = np.zeros((*shape, width), np.float32), np.zeros(shape, np.float32)
        else:
            inputs, logits = self._inputs[at], self._logits[at]
        if not known.all():
            zero = np.float32(0)
            inputs = np.where(known[..., None], inputs, zero)
            logits = np.where(known, logits, zero)
        return TeacherBatch(inputs, logits, known[:, 0].astype(np.float32))


@functools.partial(jax.jit, static_argnums=(0,))
def _preprocess(discriminator: Discriminator, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
    return discriminator.preprocess(x)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _initial_logits(
    discriminator: Discriminator,
    config: TeacherConfig,
    inputs: Float[Array, "m s"],
    one_hot: Float[Array, "m c"],
) -> Float[Array, " m"]:
    return discriminator.logits(config.initial(discriminator), inputs, one_hot)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _public_step(discriminator: Discriminator, config: TeacherConfig, query: Query) -> PublicStep:
    """What need not be computed by every teacher."""
    initial = config.initial(discriminator)

    def logits_of(inputs: Float[Array, "m s"]) -> Float[Array, " m"]:
        return discriminator.logits(initial, inputs, query.one_hot)

    _, along = jax.linearize(discriminator.preprocess, query.synthetic[:1])
    projection = jax.vmap(lambda direction: along(direction[None])[0])(query.column_projection.T).T
    inputs = discriminator.preprocess(query.synthetic)
    logits, vjp = jax.vjp(logits_of, inputs)
    slopes = vjp(jnp.ones_like(logits))[0] @ projection
    return PublicStep(
        initial, inputs, logits, slopes, projection, query.one_hot, query.row_projection
    )


def chunk_of(discriminator: Discriminator, config: TeacherConfig, records: int) -> int:
    """How many teachers a core updates at a time, by the memory that is set aside."""
    most = max(1, CHUNK_BYTES // (CORES * _bytes_each(discriminator, records)))
    turns = math.ceil(config.teachers / (CORES * most))
    return math.ceil(config.teachers / (CORES * turns))


def _bytes_each(discriminator: Discriminator, records: int) -> int:
    """The activations of one teacher for a synthetic batch and a real one."""
    return 4 * (2 * records * discriminator.activations_per_record)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _uniform(key: PRNGKeyArray, n: int, updates: int, m: int) -> Float[Array, "n u m"]:
    """Which records are drawn, for each teacher by a stream of its own."""
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(n))
    return jax.vmap(lambda key: jax.random.uniform(key, (updates, m)))(keys)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _start(
    discriminator: Discriminator, config: TeacherConfig, numbers: Int[Array, " t"]
) -> Teacher:
    if not config.keep:
        return Teacher(numbers)
    initial = config.initial(discriminator)
    weights = jax.tree.map(lambda w: jnp.repeat(w[None], len(numbers), axis=0), initial)
    return Teacher(numbers, weights, jax.vmap(config.optimiser().init)(weights))


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def _step(
    discriminator: Discriminator,
    config: TeacherConfig,
    teachers: Teacher,
    batches: TeacherBatch,
    public: PublicStep,
    key: PRNGKeyArray,
) -> tuple[Teacher, UInt8[Array, "t q"]]:
    """Some teachers, as many at once as the cache holds."""
    cached = max(1, CACHED_BYTES // _bytes_each(discriminator, len(public.inputs)))

    def one(both: tuple[Teacher, TeacherBatch]) -> tuple[Teacher, UInt8[Array, " q"]]:
        teacher, batch = both
        coin = jax.random.fold_in(jax.random.fold_in(key, teacher.number), 1)
        return _taught(discriminator, config, teacher, batch, public, coin)

    at_once = min(cached, len(batches.known))
    result: tuple[Teacher, UInt8[Array, "t q"]]
    result = jax.lax.map(one, (teachers, batches), batch_size=at_once)
    return result


def _taught(
    discriminator: Discriminator,
    config: TeacherConfig,
    teacher: Teacher,
    batch: TeacherBatch,
    public: PublicStep,
    coin: PRNGKeyArray,
) -> tuple[Teacher, UInt8[Array, " q"]]:
    """One teacher: lines 5 to 9 of Algorithm 2.

    For each synthetic record it is shown one of its own of that class. Of a class that it has no
    record of it learns nothing, and has no opinion; a teacher without records has none of anything.
    """
    optimiser = config.optimiser()

    def logits_of(weights: Weights, inputs: Float[Array, "m s"]) -> Float[Array, " m"]:
        return discriminator.logits(weights, inputs, public.one_hot)

    def update(carry: Any, shown: Any) -> tuple[Any, None]:
        (weights, state), (real, initial_logits) = carry, shown

        def loss(weights: Weights) -> Float[Array, ""]:
            of_real = jax.nn.softplus(initial_logits - logits_of(weights, real))
            of_synthetic = jax.nn.softplus(logits_of(weights, public.inputs) - public.logits)
            return jnp.mean(batch.known * (of_real + of_synthetic))

        updates, state = optimiser.update(jax.grad(loss)(weights), state)
        return (optax.apply_updates(weights, updates), state), None

    start = (teacher.weights, teacher.state)
    if not config.keep:
        start = (public.initial, optimiser.init(public.initial))
    (weights, state), _ = jax.lax.scan(update, start, (batch.inputs, batch.logits))

    # Eq. 1: up the gradient of Σ log σ(f(x) − f₀(x)), of records that it has an opinion of.
    logits, vjp = jax.vjp(functools.partial(logits_of, weights), public.inputs)
    slope = batch.known * jax.nn.sigmoid(public.logits - logits)
    projected = (public.row_projection.T @ vjp(slope)[0]) @ public.column_projection
    projected = projected - (public.row_projection.T * slope) @ public.slopes
    if config.keep:
        teacher = teacher._replace(weights=weights, state=state)
    return teacher, bins_of(projected, config, coin)


def bins_of(
    projected: Float[Array, "g k"], config: TeacherConfig, key: PRNGKeyArray
) -> UInt8[Array, " q"]:
    """The bin of each number: B of equal width from −c to c (lines 7 and 8 of Algorithm 1).

    A number that is exactly zero goes to one of the middle bins, by a coin if there are two. What
    is not a number goes to the bin of zero: every teacher casts every vote.
    """
    clip = config.clip
    if clip is None:
        squares = jnp.mean(projected**2, axis=1, keepdims=True)
        known = (squares > 0) & jnp.isfinite(squares)
        projected = jnp.where(known, projected / (1.5 * jnp.sqrt(jnp.where(known, squares, 1))), 0)
        clip = 1.0
    scaled = jnp.nan_to_num(jnp.clip(projected / clip, -1, 1), nan=0.0)
    coin = jax.random.rademacher(key, scaled.shape, scaled.dtype) * 1e-6
    scaled = jnp.where(scaled == 0, coin, scaled)
    bins = jnp.floor((scaled + 1) / 2 * config.bins).astype(jnp.int32)
    return jnp.clip(bins, 0, config.bins - 1).astype(jnp.uint8).ravel()
