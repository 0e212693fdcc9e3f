"""What a training step asks of DP-MERF's and DP-HP's features, against their plain definitions.

    python benchmarks/feature_sums.py

The distance of 25 pictures of 28 × 28 of each of ten classes from a mean, and its gradient. Plain
is the sum of the features, laid out as the formula has them: Fourier features by XLA's own cosine
and sine, Hermite functions by their recursion, differentiated by JAX. Both take turns; prints
milliseconds and ratios of the medians, and writes benchmarks/results/feature_sums.json.
"""

import json
import math
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.features.base import unit_norm
from limbeck.features.fourier import Fourier, length_scale
from limbeck.features.hermite import Hermite
from limbeck.generate.training import distance

RESULTS = Path(__file__).parent / "results" / "feature_sums.json"
CLASSES, PER_CLASS, PIXELS = 10, 25, 784
ROUNDS = 15


def fourier(phi, x):
    angles = x @ phi._frequencies
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / math.sqrt(phi.count)


def hermite(phi, x):
    scaled, rho = phi._reached(x), phi.rho
    functions = [(1 - rho**2) ** 0.25 * jnp.exp(-rho / (1 + rho) * scaled**2)]
    functions.insert(0, jnp.zeros_like(scaled))
    for c in range(phi.order):
        up, down = math.sqrt(2 * rho / (c + 1)), rho * math.sqrt(c / (c + 1))
        functions.append(up * scaled * functions[-1] - down * functions[-2])
    of_sum = jnp.stack(functions[1:], axis=2).reshape(len(x), -1) / math.sqrt(phi.dimension)
    few = jnp.stack(functions[1:])[:, :, phi._coordinates]
    products = few[:, None, :, 0] * few[None, :, :, 1]
    products = products.transpose(2, 0, 1).reshape(len(x), -1)
    return unit_norm(jnp.concatenate([of_sum, products], axis=1))


def plain_distance(features, x, mean):
    """‖μ − E φ(x)‖² less ‖μ‖² by pairs of different records."""
    phi, n = features(x), len(x)
    total = jnp.sum(phi, axis=0)
    return (jnp.sum(total**2) - jnp.sum(phi**2)) / (n * (n - 1)) - 2 * mean @ total / n


def gradient_of(one):
    return jax.jit(jax.grad(lambda x, means: jnp.sum(jax.vmap(one)(x, means))))


def compare(name, phi, features):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((CLASSES, PER_CLASS, PIXELS)), jnp.float32)
    means = jnp.asarray(rng.normal(size=(CLASSES, phi.size)) / math.sqrt(phi.size), jnp.float32)
    ways = {
        "fast": gradient_of(lambda x, mean: distance(phi, x, mean)),
        "plain": gradient_of(lambda x, mean: plain_distance(lambda x: features(phi, x), x, mean)),
    }
    found = {way: np.asarray(function(x, means)) for way, function in ways.items()}
    scale = np.abs(found["plain"]).max()
    taken = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, function in ways.items():
            start = time.perf_counter()
            jax.block_until_ready(function(x, means))
            taken[way].append(1000 * (time.perf_counter() - start))
    fast, plain = (statistics.median(taken[way]) for way in ("fast", "plain"))
    return {
        "features": name,
        "ms": round(fast, 1),
        "plain_ms": round(plain, 1),
        "ratio": round(plain / fast, 1),
        "largest_difference": float(np.abs(found["fast"] - found["plain"]).max() / scale),
    }


def main():
    rows = [
        compare("fourier", Fourier(dimension=PIXELS, length_scale=length_scale(PIXELS)), fourier),
        compare("hermite", Hermite(dimension=PIXELS), hermite),
    ]
    for row in rows:
        print(row)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
