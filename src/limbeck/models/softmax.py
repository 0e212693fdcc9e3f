"""Softmax regression by noisy gradients over all records.

    v ← β v − η g̃ / (n C),   W ← W + v;        W̃ the mean over the last steps,

where g̃ is a noisy sum of gradients clipped at C, and n the weighted number of records by noisy
counts. All of it is post-processing of noisy numbers.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

# The length of the noise that a column of the readout may gather over all steps.
GATHERED_NOISE = 42.0
# Beyond this rate steps only overshoot.
FASTEST = 100.0
# The weight of a class against the rarest: the root of how often they occur.
BALANCE = 0.5


class NoisyDescent(NamedTuple):
    """Steps, clipping norm C, momentum β, and over how many of the last steps the mean is taken.

    `rate` is η; "auto" is `readout_rate`.
    """

    steps: int = 100
    clip: float = 0.5
    momentum: float = 0.9
    averaged: int = 11
    rate: float | Literal["auto"] = "auto"


def learn(
    gradient: Callable[[Floats, Floats], Floats],
    descent: NoisyDescent,
    size: int,
    counts: Floats,
    noise_multiplier: float,
    progress: Progress = silent,
) -> Floats:
    """W̃ (`size` × classes), centred over the classes, of norm √classes: the scale decides nothing.

    `gradient` maps a readout and a weight in [0, 1] for each class to a noisy sum of gradients,
    whose noise multiplier is given; `counts` are noisy.
    """
    steps, clip, momentum, averaged, rate = descent
    weights = (counts.min() / counts) ** BALANCE
    rows = float(weights @ counts)
    if isinstance(rate, str):
        rate = readout_rate(steps, momentum, rows, noise_multiplier / math.sqrt(steps), size)
    readout = np.zeros((size, len(counts)))
    velocity, total = np.zeros_like(readout), np.zeros_like(readout)
    kept = min(averaged, steps)
    for step in range(steps):
        progress("learn", step, steps)
        direction = gradient(readout, weights) / (rows * clip)
        velocity = momentum * velocity - rate * direction
        readout = readout + velocity
        if step >= steps - kept:
            total = total + readout
    mean = total / kept
    mean -= mean.mean(axis=1, keepdims=True)
    return mean * math.sqrt(len(counts)) / max(float(np.linalg.norm(mean)), 1e-300)


def readout_rate(steps: int, momentum: float, rows: float, once: float, size: int) -> float:
    """The rate at which a column of the readout gathers noise of length `GATHERED_NOISE`.

    Over T steps at rate η with momentum β, noise of deviation `once`·√T in each of F coordinates of
    every gradient, divided by the number of rows, adds up to the length

        T η/(1 − β) · once · √F / rows.

    Signal adds up as T η/(1 − β) too, at first. So less noise, or more rows, means larger steps.

    Examples
    --------
    >>> round(readout_rate(100, 0.9, 60000, 3.73, 2048), 1)
    14.9
    """
    return min(FASTEST, GATHERED_NOISE * (1 - momentum) * rows / (steps * once * math.sqrt(size)))
