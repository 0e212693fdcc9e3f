"""What teachers agree on: noisy counts of their votes (Algorithms 1 and 3 of G-PATE).

**Guarantee.** One record belongs to one teacher (`measure.teachers.teachers_of`), and may change
all that this teacher says, in every query of every step. A teacher casts exactly one vote in each
of the q queries of a step. So in each query one count goes down by one and another up by one, and
no more: the q histograms together move by at most √(2q) in L2, their q maxima by at most √q. Each
of the two is one Gaussian event a step, whatever the answers are; all steps are composed.

The choice of the next queries depends on earlier noisy answers only: adaptive composition. Under
replacement one teacher changes too, but twice the distance is charged, as if two did.

Nothing depends on how far the teachers agree. The bound that does (Theorem 7) is a private number,
and no guarantee (`measure.consensus`).
"""

import math
import sys
from typing import Literal

import jax
import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.measure.consensus import Consensus
from limbeck.measure.teachers import Batch, Schooling, Teachers
from limbeck.models.discriminators import Discriminator
from limbeck.privacy import clipping, noise
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

VOTES = "votes of the teachers"
CONSENSUS = "largest counts of votes"
COUNTS = "class counts"


class NoisyVotes(Unique):
    """`oracle(batch)`: the teachers learn from it, and vote on how it should change.

    The answer is [g, k], as the projection of the batch is, in units of the clipping constant: −1
    is down, 1 up. A `threshold` is the share of teachers that must have chosen the same bin; else
    the answer is zero. Without one (zero) the largest counts are not asked for, nor paid for.

    **Guarantee.** A call is one Gaussian event of the counts, and one of the largest counts where
    there is a threshold. The ledger refuses a call beyond the planned number.
    """

    def __init__(
        self,
        private: Described,
        discriminator: Discriminator,
        schooling: Schooling,
        *,
        aggregate: Literal["mean", "argmax"] = "mean",
        threshold: float = 0.0,
        diagnose: bool = False,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._teachers = Teachers(
            private,
            discriminator,
            schooling,
            secret=entropy.bytes(32),
            key=jax.random.key(int.from_bytes(entropy.bytes(4), "little")),
            progress=progress,
        )
        self._classes = len(private.schema.classes)
        self._schooling, self._aggregate, self._threshold = schooling, aggregate, threshold
        self._ledger, self._entropy = ledger, entropy
        self._consensus = Consensus() if diagnose else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __call__(self, batch: Batch) -> Floats:
        """One step: one draw of noise, or two."""
        votes, bins = self._teachers.vote(batch), self._schooling.bins
        exact = clipping.count_votes(votes, bins)
        counts = noise.gaussian(exact, purpose=VOTES, ledger=self._ledger, entropy=self._entropy)
        if self._consensus is not None:
            self._consensus.add(exact.value, *self._deviations(batch.queries))
        largest = np.full(batch.queries, math.inf)
        if self._threshold:
            largest = noise.gaussian(
                clipping.most_votes(votes, bins),
                purpose=CONSENSUS,
                ledger=self._ledger,
                entropy=self._entropy,
            )
        found = answers(counts, self._schooling.teachers, self._aggregate)
        found[largest < self._threshold * self._schooling.teachers] = 0
        return found.reshape(batch.weights.shape[1], batch.basis.shape[1])

    def _deviations(self, queries: int) -> list[float]:
        """Of the noise on a count, and on the largest."""
        planned = {entry.purpose: entry.noise_multiplier or 0.0 for entry in self._ledger.plan}
        found = [planned[VOTES] * math.sqrt(2 * queries)]
        return [*found, planned[CONSENSUS] * math.sqrt(queries)] if self._threshold else found

    def tell_owner(self, delta: float) -> None:
        """Print on standard error what Theorem 7 makes of the votes, which is private.

        It holds for the commonest bin, as Algorithm 3 takes it, and leaves the class counts out.
        It goes nowhere else.
        """
        if self._consensus is not None:
            print(
                "PRIVATE, for the owner alone, and no guarantee: by the votes that were cast "
                f"(Theorem 7, without the class counts) epsilon is "
                f"{self._consensus.epsilon(delta):.4f} at delta={delta:g}",
                file=sys.stderr,
            )

    def class_counts(self) -> Floats:
        """How many records each class has, about.

        **Guarantee.** One Laplace event; a record counts for one, in one class.
        """
        return noisy_class_counts(
            self._teachers.labels, self._classes, ledger=self._ledger, entropy=self._entropy
        )


def noisy_class_counts(
    labels: NDArray[np.integer], classes: int, *, ledger: Ledger, entropy: Entropy
) -> Floats:
    """How many records each class has, about.

    **Guarantee.** One Laplace event; a record counts for one, in one class.
    """
    counts = clipping.histograms(labels[:, None], classes)
    return noise.laplace(counts, purpose=COUNTS, ledger=ledger, entropy=entropy)[0]


def midpoints(bins: int) -> Floats:
    """Of B bins of equal width from −1 to 1."""
    return (2 * np.arange(bins) + 1) / bins - 1


def answers(counts: Floats, teachers: int, aggregate: Literal["mean", "argmax"]) -> Floats:
    """From noisy counts [q, B] one number a query, in [−1, 1]: post-processing.

    "argmax" is the midpoint of the bin with the largest noisy count, as in Algorithm 3; "mean" the
    mean of all votes, which tells a narrow majority from a large one.

    Examples
    --------
    >>> answers(np.array([[10.0, 0.0, 90.0]]), 100, "argmax").round(2).tolist()
    [0.67]
    >>> answers(np.array([[10.0, 0.0, 90.0]]), 100, "mean").round(2).tolist()
    [0.53]
    """
    middle = midpoints(counts.shape[1])
    if aggregate == "argmax":
        return np.asarray(middle[counts.argmax(axis=1)])
    return np.asarray(counts @ middle / teachers)
