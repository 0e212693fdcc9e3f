"""Teachers: discriminators that each know a part of the records, and vote (Algorithm 2 of G-PATE).

Everything about a teacher is a function of its own records, of the public batch and of public
randomness: no sum, mean or normalisation goes across teachers. A record that comes or goes can
therefore change what one teacher says, and nothing that another says.

All teachers are updated by one compiled step over stacked weights, a chunk of them at a time, each
device or core its own. What they all start from is asked once, not by each of them. They hold
private records: `measure.votes` makes them and keeps them to itself.
"""

import dataclasses
import functools
import hashlib
import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.features.base import side_by_side
from limbeck.measure.records import revealed
from limbeck.models.discriminators import Discriminator, Weights
from limbeck.privacy import sampling
from limbeck.privacy.ledger import Unique
from limbeck.progress import Progress, silent

# What the activations of the teachers that are updated at a time may take.
CHUNK_BYTES = 2**25
# Of a processor the activations of those that are multiplied at once should stay in the cache.
CACHED_BYTES = 2**20
AT_A_TIME = 512


class Batch(NamedTuple):
    """What the student asks about: made-up records, and how their perturbations are projected.

    The perturbations Δx [m, d] that a teacher wants are projected on both sides to Wᵀ Δx R, of
    shape [g, k]. Algorithm 1 has W = 1, so that every record is asked about by itself, and a random
    R. All of it is public, and depends on the records through earlier noisy answers only.
    """

    fakes: Float[Array, "m d"]
    one_hot: Float[Array, "m c"]
    weights: Float[Array, "m g"]
    basis: Float[Array, "d k"]

    @property
    def queries(self) -> int:
        """How many votes a teacher casts."""
        return int(self.weights.shape[1] * self.basis.shape[1])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schooling:
    """How teachers learn and vote.

    Attributes
    ----------
    teachers : how many there are.
    updates : of each teacher in a step.
    learning_rate : of Adam.
    memory : how much of what a teacher has learned it keeps from one step to the next. All start
        from the same public weights; with 0 they do so in each step, and nothing is stored.
    bins : B of Algorithm 1.
    clip : c of Algorithm 1; None scales each row of a teacher's projection to a root mean square of
        two thirds first, and clips at one.
    """

    teachers: int
    updates: int = 1
    learning_rate: float = 1e-3
    memory: float = 0.0
    bins: int = 3
    clip: float | None = None

    def optimiser(self) -> optax.GradientTransformation:
        """As in the paper, A.6."""
        return optax.adam(self.learning_rate, b1=0.5)

    def first(self, discriminator: Discriminator) -> Weights:
        """Where all teachers start."""
        return discriminator.init(jax.random.key(0))


class Asked(NamedTuple):
    """What is the same for all teachers in a step; all of it is public.

    All start from the same weights. Whose own opinion of records is noise, so it is taken off.
    """

    first: Weights
    seen: Float[Array, "m s"]  # the made-up records
    logits: Float[Array, " m"]  # of the first weights, and how they change with the records
    slopes: Float[Array, "m k"]
    basis: Float[Array, "s k"]  # the directions, as they are seen
    one_hot: Float[Array, "m c"]
    weights: Float[Array, "m g"]


class Own(NamedTuple):
    """Records of a teacher that it is shown in a step; or those of several teachers, stacked."""

    seen: Float[NDArray[np.float32], "*n u m s"]
    logits: Float[NDArray[np.float32], "*n u m"]  # of the first weights
    has: Float[NDArray[np.float32], "*n m"]  # whether it has any record of that class


class Teacher(NamedTuple):
    """A teacher's number, weights and state of Adam; or those of several, stacked.

    Teachers without memory have neither.
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
    row is rounded alike wherever it stands in a piece, as a test sees it. The secret is never
    written down.
    """
    found = np.empty(rows, np.int64)
    for position in range(rows):
        digest = hashlib.blake2b(position.to_bytes(8, "little"), key=secret, digest_size=8)
        found[position] = int.from_bytes(digest.digest(), "little") % teachers
    return found


class Teachers(Unique):
    """The teachers with their records; `vote` lets them learn for a step, and asks them.

    Records are drawn and gathered outside of what is compiled, so that no compiled shape, and with
    it no rounding, depends on how many records there are.
    """

    def __init__(
        self,
        private: Described,
        discriminator: Discriminator,
        schooling: Schooling,
        *,
        secret: bytes,
        key: PRNGKeyArray,
        progress: Progress = silent,
    ) -> None:
        self._discriminator, self._schooling = discriminator, schooling
        self._read(private, secret, progress)
        self._mesh = _mesh(schooling.teachers)
        # Made when the size of a batch is known.
        self._chunks: list[Teacher] = []
        self._key, self._steps = key, 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def _read(self, private: Described, secret: bytes, progress: Progress) -> None:
        """Records as discriminators see them, sorted by teacher and class."""
        n, classes = self._schooling.teachers, len(private.schema.classes)
        seen, labels = [], []
        for x, y in revealed(private, "read", progress):
            seen.append(_in_pieces(functools.partial(_seen, self._discriminator), x))
            labels.append(y)
        self.labels = np.concatenate(labels)
        place = teachers_of(len(self.labels), n, secret) * classes + self.labels
        order = np.argsort(place, kind="stable")
        self._seen = np.concatenate(seen)[order]
        self._logits = _in_pieces(
            functools.partial(_first_logits, self._discriminator, self._schooling),
            self._seen,
            np.eye(classes, dtype=np.float32)[self.labels[order]],
        )
        count = np.bincount(place, minlength=n * classes)
        self._first = (np.cumsum(count) - count).reshape(n, classes)
        self._count = count.reshape(n, classes)

    def vote(self, batch: Batch) -> NDArray[np.uint8]:
        """Update every teacher, then [n, q]: the bin of each teacher's answer to each query."""
        key = jax.random.fold_in(self._key, self._steps)
        self._steps += 1
        if not self._chunks:
            self._chunks = self._untrained(len(batch.fakes))
        uniform = _uniform(key, self._schooling.teachers, self._schooling.updates, len(batch.fakes))
        asked = _asked(self._discriminator, self._schooling, batch)
        labels, shares = np.asarray(batch.one_hot).argmax(axis=1), np.asarray(uniform)

        def taught(chunk: Teacher) -> tuple[Teacher, UInt8[Array, "t q"]]:
            these = slice(int(chunk.number[0]), int(chunk.number[-1]) + 1)
            own = self._drawn(shares[these], these, labels)
            return _step(self._discriminator, self._schooling, self._mesh, chunk, own, asked, key)

        found = side_by_side(taught, self._chunks)
        self._chunks = [chunk for chunk, _ in found]
        return np.concatenate([np.asarray(cast) for _, cast in found])

    def _untrained(self, records: int) -> list[Teacher]:
        n, devices = self._schooling.teachers, self._mesh.size
        chunk = chunk_of(self._discriminator, self._schooling, records)
        chunk = max(devices, chunk // devices * devices)
        numbers = [jnp.arange(at, min(at + chunk, n)) for at in range(0, n, chunk)]
        split = NamedSharding(self._mesh, PartitionSpec("teachers"))
        return [
            jax.device_put(_start(self._discriminator, self._schooling, i), split) for i in numbers
        ]

    def _drawn(
        self, uniform: NDArray[np.float32], these: slice, labels: NDArray[np.integer]
    ) -> Own:
        """For each made-up record one of the teacher's own of that class.

        `uniform` [t, u, m] says which; a teacher without one is given zeros, which count nothing.
        """
        count = self._count[these][:, None, labels]
        among = np.minimum((uniform.astype(np.float64) * count).astype(np.int64), count - 1)
        has = count > 0
        at = np.where(has, self._first[these][:, None, labels] + among, 0)
        seen, logits = self._seen[at], self._logits[at]
        if not has.all():
            zero = np.float32(0)
            seen, logits = np.where(has[..., None], seen, zero), np.where(has, logits, zero)
        return Own(seen, logits, has[:, 0].astype(np.float32))


def _in_pieces(function: Callable[..., Array], *arrays: NDArray[np.float32]) -> NDArray[np.float32]:
    """A function of each record, computed for so many of them at a time, whatever comes."""
    found = []
    for positions, mask in sampling.pieces(np.arange(len(arrays[0])), AT_A_TIME):
        piece = [jnp.asarray(array[positions]) for array in arrays]
        found.append(np.asarray(function(*piece))[mask])
    return np.concatenate(found)


@functools.partial(jax.jit, static_argnums=(0,))
def _seen(discriminator: Discriminator, x: Float[Array, "m d"]) -> Float[Array, "m s"]:
    return discriminator.preprocess(x)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _first_logits(
    discriminator: Discriminator,
    schooling: Schooling,
    seen: Float[Array, "m s"],
    one_hot: Float[Array, "m c"],
) -> Float[Array, " m"]:
    return discriminator.logits(schooling.first(discriminator), seen, one_hot)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _asked(discriminator: Discriminator, schooling: Schooling, batch: Batch) -> Asked:
    """What need not be computed by every teacher."""
    first = schooling.first(discriminator)

    def logits(seen: Float[Array, "m s"]) -> Float[Array, " m"]:
        return discriminator.logits(first, seen, batch.one_hot)

    _, along = jax.linearize(discriminator.preprocess, batch.fakes[:1])
    basis = jax.vmap(lambda direction: along(direction[None])[0])(batch.basis.T).T
    seen = discriminator.preprocess(batch.fakes)
    found, back = jax.vjp(logits, seen)
    slopes = back(jnp.ones_like(found))[0] @ basis
    return Asked(first, seen, found, slopes, basis, batch.one_hot, batch.weights)


def chunk_of(discriminator: Discriminator, schooling: Schooling, records: int) -> int:
    """How many teachers are updated at a time: as many as memory is set aside for.

    Each core has its own, and all have as many.
    """
    cores = _cores()
    most = max(1, CHUNK_BYTES // (cores * _bytes_each(discriminator, records)))
    turns = math.ceil(schooling.teachers / (cores * most))
    return math.ceil(schooling.teachers / (cores * turns))


def _cores() -> int:
    """That work for themselves; an accelerator does for its own."""
    return (os.cpu_count() or 1) if jax.default_backend() == "cpu" else 1


def _bytes_each(discriminator: Discriminator, records: int) -> int:
    """Of activations, of a made-up batch and a real one."""
    return 4 * (2 * records * discriminator.activations_per_record)


def _mesh(teachers: int) -> Mesh:
    """As many of the devices as share the teachers out evenly."""
    devices = jax.devices()
    used = max(k for k in range(1, len(devices) + 1) if teachers % k == 0)
    return Mesh(np.array(devices[:used]), ("teachers",))


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _uniform(key: PRNGKeyArray, n: int, updates: int, m: int) -> Float[Array, "n u m"]:
    """Which records, of each teacher by its own stream."""
    own = jax.vmap(lambda number: jax.random.fold_in(key, number))(jnp.arange(n))
    return jax.vmap(lambda key: jax.random.uniform(key, (updates, m)))(own)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _start(
    discriminator: Discriminator,
    schooling: Schooling,
    numbers: Int[Array, " t"],
) -> Teacher:
    if not schooling.memory:
        return Teacher(numbers)
    first = schooling.first(discriminator)
    weights = jax.tree.map(lambda w: jnp.repeat(w[None], len(numbers), axis=0), first)
    return Teacher(numbers, weights, jax.vmap(schooling.optimiser().init)(weights))


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=(3,))
def _step(
    discriminator: Discriminator,
    schooling: Schooling,
    mesh: Mesh,
    teachers: Teacher,
    own: Own,
    asked: Asked,
    key: PRNGKeyArray,
) -> tuple[Teacher, UInt8[Array, "t q"]]:
    """Some teachers side by side; each device has its own, and their records only.

    On a processor few at a time are multiplied at once, as many as its cache holds.
    """
    cached = max(1, CACHED_BYTES // _bytes_each(discriminator, len(asked.seen)))

    def taught(
        teachers: Teacher, own: Own, asked: Asked, key: PRNGKeyArray
    ) -> tuple[Teacher, UInt8[Array, "t q"]]:
        def one(both: tuple[Teacher, Own]) -> tuple[Teacher, UInt8[Array, " q"]]:
            teacher, shown = both
            coin = jax.random.fold_in(jax.random.fold_in(key, teacher.number), 1)
            return _taught(discriminator, schooling, teacher, shown, asked, coin)

        found: tuple[Teacher, UInt8[Array, "t q"]]
        at_once = cached if jax.default_backend() == "cpu" else len(own.has)
        found = jax.lax.map(one, (teachers, own), batch_size=min(at_once, len(own.has)))
        return found

    split, whole = PartitionSpec("teachers"), PartitionSpec()
    shared_out = jax.shard_map(
        taught,
        mesh=mesh,
        in_specs=(split, split, whole, whole),
        out_specs=(split, split),
        # Else gradients with respect to what devices share are summed over devices, hence teachers.
        check_vma=False,
    )
    return shared_out(teachers, own, asked, key)


def _taught(
    discriminator: Discriminator,
    schooling: Schooling,
    teacher: Teacher,
    own: Own,
    asked: Asked,
    coin: PRNGKeyArray,
) -> tuple[Teacher, UInt8[Array, " q"]]:
    """One teacher: lines 5 to 9 of Algorithm 2.

    For each made-up record it sees one of its own of that class. Of a class that it has no record
    of it learns nothing, and has no opinion; a teacher without records has none of anything.
    """
    optimiser = schooling.optimiser()

    def logits(weights: Weights, seen: Float[Array, "m s"]) -> Float[Array, " m"]:
        return discriminator.logits(weights, seen, asked.one_hot)

    def update(carry: Any, shown: Any) -> tuple[Any, None]:
        (weights, state), (real, first) = carry, shown

        def loss(weights: Weights) -> Float[Array, ""]:
            of_real = jax.nn.softplus(first - logits(weights, real))
            of_fake = jax.nn.softplus(logits(weights, asked.seen) - asked.logits)
            return jnp.mean(own.has * (of_real + of_fake))

        updates, state = optimiser.update(jax.grad(loss)(weights), state)
        return (optax.apply_updates(weights, updates), state), None

    weights, state = teacher.weights, teacher.state
    if not schooling.memory:
        weights = asked.first
    elif schooling.memory < 1:
        weights = jax.tree.map(lambda w, w0: w0 + schooling.memory * (w - w0), weights, asked.first)
    if schooling.memory < 1:
        state = optimiser.init(weights)
    (weights, state), _ = jax.lax.scan(update, (weights, state), (own.seen, own.logits))

    # Eq. 1: up the gradient of Σ log σ(f(x) − f₀(x)), of records that it has an opinion of.
    found, back = jax.vjp(functools.partial(logits, weights), asked.seen)
    slope = own.has * jax.nn.sigmoid(asked.logits - found)
    projected = (asked.weights.T @ back(slope)[0]) @ asked.basis
    projected = projected - (asked.weights.T * slope) @ asked.slopes
    if schooling.memory:
        teacher = teacher._replace(weights=weights, state=state)
    return teacher, bins_of(projected, schooling, coin)


def bins_of(
    projected: Float[Array, "g k"], schooling: Schooling, key: PRNGKeyArray
) -> UInt8[Array, " q"]:
    """The bin of each number: B of equal width from −c to c (lines 7 and 8 of Algorithm 1).

    A number that is exactly zero says nothing and goes to one of the middle bins, by a coin if
    there are two. What is no number goes to the bin of zero: every teacher casts every vote.
    """
    clip = schooling.clip
    if clip is None:
        squares = jnp.mean(projected**2, axis=1, keepdims=True)
        known = (squares > 0) & jnp.isfinite(squares)
        projected = jnp.where(known, projected / (1.5 * jnp.sqrt(jnp.where(known, squares, 1))), 0)
        clip = 1.0
    scaled = jnp.nan_to_num(jnp.clip(projected / clip, -1, 1), nan=0.0)
    coin = jax.random.rademacher(key, scaled.shape, scaled.dtype) * 1e-6
    scaled = jnp.where(scaled == 0, coin, scaled)
    bins = jnp.floor((scaled + 1) / 2 * schooling.bins).astype(jnp.int32)
    return jnp.clip(bins, 0, schooling.bins - 1).astype(jnp.uint8).ravel()
