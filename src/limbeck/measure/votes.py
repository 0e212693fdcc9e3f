"""What teachers agree on: noisy counts of their votes (Algorithms 1 and 3 of G-PATE).

One record belongs to one teacher (`teachers_of`), and may change all that this teacher says, in
every question of every step. A teacher casts exactly one vote for each of the q questions of a
step. So for each question one count goes down by one and another up by one, and no more.

The choice of the next questions depends on earlier noisy answers only: adaptive composition. Under
replacement one teacher changes too, but twice the distance is charged, as if two did. Nothing
depends on how far the teachers agree.
"""

import dataclasses
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from limbeck.measure.rows import Block, Rows
from limbeck.measure.teachers import Query, Teachers
from limbeck.privacy.run import Run

Floats = NDArray[np.float64]

VOTES = "votes of the teachers"
LARGEST = "largest counts of votes"


@dataclasses.dataclass(frozen=True)
class VoteCounts:
    """How many teachers chose each bin, for every question, [q, bins].

    Rows hold the votes of the teachers, one byte a question. The number of teachers is public.

    **Guarantee.** A record changes the votes of one teacher; its counts move by at most one down
    and one up for each of the q questions: by √(2q) in L2.
    """

    questions: int
    bins: int
    block: int  # all teachers

    grid, l1_bound, exact = 1.0, None, True

    @property
    def l2_bound(self) -> float:
        """√(2q)."""
        return math.sqrt(2 * self.questions)

    def __call__(self, public: Any, block: Block) -> NDArray[np.int64]:
        """The counts."""
        return tally(block.values[block.mask], self.bins)


@dataclasses.dataclass(frozen=True)
class LargestCounts:
    """The largest count of each question, [q].

    **Guarantee.** When one teacher moves from one bin to another, no count changes by more than
    one, nor does the largest: they move by at most √q in L2. (The maximum is taken of the counts of
    all teachers, which are one block.)
    """

    questions: int
    bins: int
    block: int  # all teachers

    grid, l1_bound, exact = 1.0, None, True

    @property
    def l2_bound(self) -> float:
        """√q."""
        return math.sqrt(self.questions)

    def __call__(self, public: Any, block: Block) -> NDArray[np.int64]:
        """The maxima."""
        return tally(block.values[block.mask], self.bins).max(axis=1)


def noisy_answers(
    run: Run,
    teachers: Teachers,
    query: Query,
    step: int,
    *,
    aggregate: Literal["mean", "argmax"],
    threshold: float = 0.0,
) -> Floats:
    """The teachers learn from a query, and vote on how its records should change.

    The answer is [g, k], as the projection of the query is, in units of the clipping constant: −1
    is down, 1 up. A `threshold` is the share of teachers that must have chosen the same bin; else
    the answer is zero. Without one (zero) the largest counts are not measured, nor paid for.

    **Guarantee.** One Gaussian event of the counts, and one of the largest counts where there is a
    threshold.
    """
    questions, config = math.prod(query.shape), teachers.config
    votes = teachers.votes(query, step)
    ballots = Rows(lambda: [(votes, np.zeros(len(votes), np.int32))], (questions,), np.uint8)
    asked = questions, config.bins, config.teachers
    counts = run.sum(ballots, VoteCounts(*asked), purpose=VOTES)
    answers = answers_of(counts, config.teachers, aggregate)
    if threshold:
        largest = run.sum(ballots, LargestCounts(*asked), purpose=LARGEST)
        answers[largest < threshold * config.teachers] = 0
    return answers.reshape(query.shape)


def tally(votes: NDArray[np.uint8], bins: int) -> NDArray[np.int64]:
    """Votes [n, q] counted bin by bin, [q, bins]; one beyond the last bin counts for the last.

    Examples
    --------
    >>> tally(np.array([[0], [2], [2]], np.uint8), 3).tolist()
    [[1, 0, 2]]
    """
    counts = np.zeros((bins, votes.shape[1]), np.int64)
    for start in range(0, len(votes), 255):  # so many fit into a byte, and bytes are fast to add
        some = np.minimum(votes[start : start + 255], np.uint8(bins - 1))
        for place in range(bins):
            counts[place] += np.add.reduce((some == place).view(np.uint8), axis=0, dtype=np.uint8)
    return counts.T


def midpoints(bins: int) -> Floats:
    """The midpoints of B bins of equal width from −1 to 1."""
    return (2 * np.arange(bins) + 1) / bins - 1


def answers_of(counts: Floats, teachers: int, aggregate: Literal["mean", "argmax"]) -> Floats:
    """From noisy counts [q, B] one number a question, in [−1, 1]: post-processing.

    "argmax" is the midpoint of the bin with the largest noisy count, as in Algorithm 3; "mean" the
    mean of all votes, which tells a narrow majority from a large one.

    Examples
    --------
    >>> answers_of(np.array([[10.0, 0.0, 90.0]]), 100, "argmax").round(2).tolist()
    [0.67]
    >>> answers_of(np.array([[10.0, 0.0, 90.0]]), 100, "mean").round(2).tolist()
    [0.53]
    """
    middle = midpoints(counts.shape[1])
    if aggregate == "argmax":
        return np.asarray(middle[counts.argmax(axis=1)])
    return np.asarray(counts @ middle / teachers)
