"""Which records take part in a draw: Poisson sampling, and pieces of one fixed shape."""

from collections.abc import Iterator

import numpy as np

from limbeck.privacy.noise import Entropy


def poisson(entropy: Entropy, rows: int, probability: float) -> np.ndarray:
    """The positions of the records drawn: each on its own, each time anew.

    **Guarantee.** Every record is drawn with `probability` (rounded down to a multiple of 2⁻³²),
    independently of the others and of earlier batches; the size of the batch is random and may be
    zero. This is the sampling that Poisson-sampled events assume.
    """
    if probability == 1:
        return np.arange(rows)
    threshold = np.uint32(int(probability * 2**32))
    return np.flatnonzero(np.frombuffer(entropy.bytes(4 * rows), np.uint32) < threshold)


def pieces(batch: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut a batch into pieces of exactly `size` positions, each with a mask of what is real.

    A batch of any size is covered without truncation, so the accounting stays exact and compiled
    code sees one shape only. An empty batch is one piece of padding.

    Examples
    --------
    >>> [(p.tolist(), m.tolist()) for p, m in pieces(np.array([4, 7, 9]), 2)]
    [([4, 7], [True, True]), ([9, 0], [True, False])]
    """
    for start in range(0, max(len(batch), 1), size):
        real = batch[start : start + size]
        positions = np.zeros(size, batch.dtype)
        positions[: len(real)] = real
        yield positions, np.arange(size) < len(real)
