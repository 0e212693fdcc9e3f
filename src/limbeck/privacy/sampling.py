"""Which records take part in a draw: Poisson sampling."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.noise import Entropy


class Sample(NamedTuple):
    """A Poisson sample of records that come in parts, one after the other."""

    entropy: Entropy
    probability: float

    def of(self, rows: int) -> NDArray[np.intp] | None:
        """The positions sampled among the next `rows` records; None for all of them."""
        return None if self.probability == 1 else poisson(self.entropy, rows, self.probability)


def poisson(entropy: Entropy, rows: int, probability: float) -> NDArray[np.intp]:
    """The positions of the records drawn: each on its own, each time anew.

    **Guarantee.** Every record is drawn with `probability` (rounded down to a multiple of 2⁻³²),
    independently of the others and of earlier batches; the size of the batch is random and may be
    zero. This is the sampling that Poisson-sampled events assume.
    """
    if probability == 1:
        return np.arange(rows)
    threshold = np.uint32(int(probability * 2**32))
    return np.flatnonzero(np.frombuffer(entropy.bytes(4 * rows), np.uint32) < threshold)
