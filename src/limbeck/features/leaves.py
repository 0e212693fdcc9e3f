"""Dead leaves: pictures that nobody took, with the statistics of those that people take.

Shapes of random size, place, slant and colour fall on top of each other. Sizes follow a power law,
so that the picture has no scale of its own, and edges hide what is below, as things do (Lee,
Mumford & Huang 2001). They know no record: what is learned from them costs no privacy.
"""

import math

import numpy as np
from numpy.typing import NDArray

MOST_LEAVES = 40
SMALLEST = 3.0  # pixels
COLOUR = 0.35  # spread of the colours of a leaf about its brightness
AT_A_TIME = 100


def dead_leaves(count: int, shape: tuple[int, int, int], seed: int = 0) -> NDArray[np.float32]:
    """So many pictures, one a row; the brightness of a leaf is standard normal.

    Examples
    --------
    >>> dead_leaves(2, (8, 8, 3)).shape
    (2, 192)
    """
    rng = np.random.RandomState(seed)  # its stream is the same in all versions of NumPy
    starts = range(0, count, AT_A_TIME)
    parts = [_some(min(AT_A_TIME, count - start), shape, rng) for start in starts]
    return np.concatenate(parts).reshape(count, math.prod(shape)).astype(np.float32)


def _some(
    count: int, shape: tuple[int, int, int], rng: np.random.RandomState
) -> NDArray[np.float64]:
    height, width, channels = shape
    largest = max(height, width)

    def colours() -> NDArray[np.float64]:
        return rng.normal(size=(count, 1)) + COLOUR * rng.normal(size=(count, channels))

    rows, columns = np.mgrid[:height, :width]
    pictures = np.tile(colours()[:, None, None], (1, height, width, 1))
    leaves = rng.randint(1, MOST_LEAVES, size=count)
    for leaf in range(MOST_LEAVES - 1):
        spread = rng.uniform(min(1.0, (SMALLEST / largest) ** 2), 1, size=count)
        radius = SMALLEST / np.sqrt(spread)  # density falling as the cube
        slant, stretch = rng.uniform(0, math.pi, size=count), np.exp(0.5 * rng.normal(size=count))
        down = rows - rng.uniform(0, height, size=count)[:, None, None]
        across = columns - rng.uniform(0, width, size=count)[:, None, None]
        cosine, sine = np.cos(slant)[:, None, None], np.sin(slant)[:, None, None]
        u = (cosine * across + sine * down) * (stretch / radius)[:, None, None]
        v = (cosine * down - sine * across) / (stretch * radius)[:, None, None]
        round_one = (rng.uniform(size=count) < 0.5)[:, None, None]
        inside = np.where(round_one, u**2 + v**2 < 1, np.maximum(abs(u), abs(v)) < 1)
        falls = inside & (leaf < leaves)[:, None, None]
        pictures = np.where(falls[..., None], colours()[:, None, None], pictures)
    return pictures
