"""Oracles for kernel-inducing points: a support set in, a noisy gradient out.

They hold the private rows for as long as a method runs; nothing of them can be read off an
oracle but what its methods return.
"""

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Described
from limbeck.measure.records import Records, Regression
from limbeck.privacy import clipping, noise, sampling
from limbeck.privacy.clipping import Clip
from limbeck.privacy.ledger import Ledger, Unique
from limbeck.privacy.noise import Entropy
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

GRADIENT = "gradient"
COUNT = "count"


class NoisyGradient(Unique):
    """`oracle(support)`: the noisy sum of clipped gradients over a fresh Poisson batch.

    Steps 3 to 7 of Algorithm 1 of DP-KIP-ScatterNet. `support` is what the records' gradients are
    taken with respect to, as `kind` says: the coordinates of the support points, their features, or
    their readout.

    **Guarantee.** Each call is one Gaussian event with the ledger's noise multiplier, Poisson
    sampled with `sampling_probability`; a record contributes at most `clip.record_norm` in L2
    norm. The ledger refuses a call beyond the planned number.
    """

    def __init__(
        self,
        private: Described,
        problem: Regression,
        kind: type[Records],
        *,
        clip: Clip,
        sampling_probability: float,
        ledger: Ledger,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> None:
        self._records = kind(private, problem, progress)
        self._clip = clip
        self._sampling_probability = sampling_probability
        self._ledger = ledger
        self._entropy = entropy

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __call__(self, support: NDArray[np.floating]) -> Floats:
        """One draw of noise."""
        rows = len(self._records.labels)
        batch = sampling.poisson(self._entropy, rows, self._sampling_probability)
        bounded = self._clip.bounded(
            self._records.clipped_sum(support, batch, self._clip), self._sampling_probability
        )
        return noise.gaussian(bounded, purpose=GRADIENT, ledger=self._ledger, entropy=self._entropy)

    def count(self) -> float:
        """The noisy number of records.

        **Guarantee.** One Gaussian event; a record counts for one.
        """
        counted = clipping.count(len(self._records.labels))
        return float(
            noise.gaussian(counted, purpose=COUNT, ledger=self._ledger, entropy=self._entropy)
        )
