"""Private rows as a gradient needs them, and the clipped sum over a batch of them.

One class for each thing that a gradient can be taken with respect to: the support points, for a
kernel of inner products; the readout, the features or the pixels of the support points, for a
feature map. They hold private rows; the oracles make them and keep them to themselves.
"""

import abc
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from limbeck.data.private import PrivateData
from limbeck.data.schema import Described
from limbeck.features.base import FeatureMap, InnerProductKernel, features_of
from limbeck.features.canvas import Canvas, jacobians, pulled
from limbeck.features.canvas import features as features_on
from limbeck.features.inputs import Inputs
from limbeck.features.scattering import Scattering
from limbeck.measure import feature_gradients, krr_gradients
from limbeck.models import ridge
from limbeck.privacy import sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Unique
from limbeck.progress import Progress, silent

Floats = NDArray[np.floating]


class Regression(NamedTuple):
    """The public half of the problem: what is regressed on what."""

    kernel: InnerProductKernel | FeatureMap
    inputs: Inputs
    canvas: Canvas
    support_y: NDArray[np.float64]
    regularisation: float


class Records(Unique, abc.ABC):
    """Rows with labels, and sums over some of them."""

    # Taken up in pieces of this many: one compiled shape, bounded memory.
    at_a_time = 512

    problem: Regression
    labels: NDArray[np.int32]

    @abc.abstractmethod
    def __init__(
        self, private: Described, problem: Regression, progress: Progress = silent
    ) -> None:
        """Read the rows."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def clipped_sum(
        self, support: NDArray[np.floating], batch: NDArray[np.intp], clip: Clip
    ) -> NDArray[np.float64]:
        """Σ c_l G_l over the batch, a piece at a time."""
        with jax.enable_x64(True):
            prepared, total = self.prepare(support), jnp.zeros(support.shape)
            for positions, mask in sampling.pieces(batch, self.at_a_time):
                # Not waited for: the next piece is gathered meanwhile.
                total = total + self.piece(clip, prepared, positions, jnp.asarray(mask))
            return np.asarray(total)

    def y(self, positions: NDArray[np.intp] | slice) -> NDArray[np.float64]:
        """The labels as regression targets."""
        return centred_one_hot(self.labels[positions], self.problem.support_y.shape[1])

    @abc.abstractmethod
    def prepare(self, support: NDArray[np.floating]) -> Any:
        """What a step needs of the support set."""

    @abc.abstractmethod
    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """The clipped sum over one piece."""


class KernelRecords(Records):
    """For a kernel of inner products: rows in the coordinates of the support points."""

    def __init__(
        self, private: Described, problem: Regression, progress: Progress = silent
    ) -> None:
        rows, norms, labels = [], [], []
        for x, y in revealed(private, "read", progress):
            inputs = problem.inputs.from_records(x.astype(np.float64))
            rows.append(inputs @ problem.inputs.basis)
            norms.append(np.sum(inputs**2, axis=1))
            labels.append(y)
        self.problem, self.labels = problem, np.concatenate(labels)
        self.x, self.norms = np.concatenate(rows), np.concatenate(norms)

    def prepare(
        self, support: NDArray[np.floating]
    ) -> tuple[krr_gradients.Support, krr_gradients.LowRank | None]:
        """The ridge solution and its derivatives."""
        kernel, _, _, support_y, regularisation = self.problem
        assert isinstance(kernel, InnerProductKernel)
        x = jnp.asarray(support, jnp.float64)
        return krr_gradients.prepare(kernel, x, jnp.asarray(support_y), regularisation)

    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """In closed form."""
        kernel = self.problem.kernel
        assert isinstance(kernel, InnerProductKernel)
        taken = self.x[positions], self.norms[positions], self.y(positions)
        x, norms, y = map(jnp.asarray, taken)
        records = krr_gradients.Records(x, norms, y, mask)
        return krr_gradients.clipped_sum(kernel, clip, *prepared, records)


class FeatureRecords(Records):
    """For a feature map, with respect to the features of the support points.

    The records' features are computed once and stay in memory, in float32; they are rounded once,
    as the records themselves are when they are encoded, and everything after that is float64.
    """

    def __init__(
        self, private: Described, problem: Regression, progress: Progress = silent
    ) -> None:
        assert isinstance(problem.kernel, FeatureMap)
        found, labels = np.empty((0, problem.kernel.size), np.float32), []
        for x, y in revealed(private, "features", progress):
            before = len(found)
            # Grown in place, for two copies of it might not fit.
            found.resize((before + len(x), problem.kernel.size), refcheck=False)
            found[before:] = finite(features_of(problem.kernel, problem.inputs.from_records(x)))
            labels.append(y)
        self.problem, self.labels, self.features = problem, np.concatenate(labels), found

    def prepare(self, support: NDArray[np.floating]) -> Any:
        """The ridge solution, from the features of the support points."""
        features, y = jnp.asarray(support, jnp.float64), jnp.asarray(self.problem.support_y)
        return ridge.solve(features, y, self.problem.regularisation)

    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """In closed form."""
        records = self.taken(positions, mask)
        return feature_gradients.clipped_sum_of_features(clip, prepared, records)

    def taken(self, positions: NDArray[np.intp], mask: jax.Array) -> feature_gradients.Records:
        """The records at these positions."""
        features = jnp.asarray(self.features[positions])
        return feature_gradients.Records(features, jnp.asarray(self.y(positions)), mask)


class ReadoutRecords(FeatureRecords):
    """For a feature map, with respect to the readout of the support points."""

    def prepare(self, support: NDArray[np.floating]) -> jax.Array:
        """The readout itself."""
        return jnp.asarray(support, jnp.float64)

    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """An outer product a record."""
        records = self.taken(positions, mask)
        return feature_gradients.clipped_sum_of_readout(clip, prepared, records)


class PixelRecords(FeatureRecords):
    """For a feature map, with respect to the coordinates of the support points, by Jacobians."""

    def prepare(self, support: NDArray[np.floating]) -> tuple[ridge.Ridge, jax.Array]:
        """The ridge solution, and one Jacobian a support point."""
        phi, canvas = self.problem.kernel, self.problem.canvas
        assert isinstance(phi, FeatureMap)
        solution = super().prepare(features_on(phi, canvas, support))
        return solution, jacobians(phi, canvas, support)

    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """By matrix products with the Jacobians."""
        records = self.taken(positions, mask)
        return feature_gradients.clipped_sum_of_pixels(clip, *prepared, records)


class PulledRecords(FeatureRecords):
    """The same as `PixelRecords` without Jacobians, for fewer records than coordinates.

    What is pulled back of a record is float32, and where points lie close together nearly all of it
    cancels. So this is for a map, and for a machine, that rounds it alike wherever it stands.
    """

    @classmethod
    def suits(cls, problem: Regression, expected_batch: float) -> bool:
        """Whether it can be used, and is less work than Jacobians; by public numbers."""
        whole_pieces = math.ceil(min(expected_batch, 1e9) / cls.at_a_time) * cls.at_a_time
        rounds_alike = isinstance(problem.kernel, Scattering) and jax.default_backend() == "cpu"
        return rounds_alike and whole_pieces < problem.inputs.basis.shape[1]

    def prepare(self, support: NDArray[np.floating]) -> Any:
        """The ridge solution, and its features pulled back to every support point."""
        features = features_on(self._phi, self.problem.canvas, support)
        more = -len(features) % self._phi.batch
        padded = jnp.asarray(np.pad(features, ((0, more), (0, 0))))
        of_support = self._pulled(support, padded)[:, : len(features)]
        return super().prepare(features), support, of_support

    def piece(
        self, clip: Clip, prepared: Any, positions: NDArray[np.intp], mask: jax.Array
    ) -> jax.Array:
        """Record by record, without a Jacobian."""
        solution, support, of_support = prepared
        records = self.taken(positions, mask)
        own = self._pulled(support, records.features)
        return feature_gradients.clipped_sum_of_pulled(clip, solution, of_support, own, records)

    @property
    def _phi(self) -> Scattering:
        assert isinstance(self.problem.kernel, Scattering)
        return self.problem.kernel

    def _pulled(self, support: NDArray[np.floating], directions: jax.Array) -> jax.Array:
        return jnp.stack(pulled(self._phi, self.problem.canvas, support, directions))


def finite(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """A record whose features are not all numbers has none."""
    return np.where(np.isfinite(features).all(axis=1, keepdims=True), features, np.float32(0))


def revealed(
    private: Described, stage: str, progress: Progress
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
    """The encoded rows and labels, a batch at a time."""
    if not isinstance(private, PrivateData):
        raise TypeError("records are read from PrivateData; open them with limbeck.open")
    done, rows = 0, private.schema.public_rows
    for x, labels in private.reveal():
        progress(stage, done if rows else 0, rows or 0)  # how many there are may be private
        # One order of the numbers in memory, hence one rounding of sums along a row.
        yield np.ascontiguousarray(x), labels
        done += len(labels)


def centred_one_hot(labels: NDArray[np.integer], classes: int) -> NDArray[np.float64]:
    """One-hot rows minus 1/classes, which regression treats as zero knowledge.

    Examples
    --------
    >>> centred_one_hot(np.array([1]), 2).tolist()
    [[-0.5, 0.5]]
    """
    return np.eye(classes)[labels] - 1 / classes
