"""One DP-KIP step on the FC-NTK: the closed form against vmap(grad) of the definition.

    python benchmarks/dp_kip_fc.py [--points 10 100 500] [--json benchmarks/results/dp_kip_fc.json]

B = 500 records of D = 784 coordinates, 10 classes, normalised gradients. Both compute the same
clipped sum, and the difference is printed. Ours runs in float64, for the guarantee's sake; the
plain one is timed in float32, as published codes run it, and in float64. The sides take turns of
several steps in one process, and the ratio is that of the median times; peak memory is what one
step adds in a process of its own.
"""

import argparse
import functools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from limbeck.measure.krr_gradients import Records, clipped_sum, prepare

from limbeck.cli.console import peak_memory_mb
from limbeck.features.fc_ntk import FCNTK
from limbeck.privacy.clipping import Clip

RECORDS, DIMENSION, CLASSES, REGULARISATION = 500, 784, 10, 1e-4
KERNEL = FCNTK(dimension=DIMENSION)


def problem(points):
    rng = np.random.default_rng(0)
    x, support_x = rng.normal(size=(RECORDS, DIMENSION)), rng.normal(size=(points, DIMENSION))
    one_hot = np.eye(CLASSES) - 1 / CLASSES
    y, support_y = (
        one_hot[rng.integers(CLASSES, size=RECORDS)],
        one_hot[np.arange(points) % CLASSES],
    )
    return support_x, support_y, x, y


@jax.jit
def _records(x, y):
    return Records(x, jnp.sum(x**2, axis=1), y, jnp.ones(RECORDS, bool))


def closed_form(support_x, support_y, x, y):
    with jax.enable_x64(True):
        records = _records(x, y)
        support, low_rank = prepare(KERNEL, support_x, support_y, REGULARISATION)
        return jax.block_until_ready(clipped_sum(KERNEL, Clip(), support, low_rank, records))


@jax.jit
def _plain(support_x, support_y, x, y):
    def loss(support_x, x, y):
        k = KERNEL.symmetric(support_x)
        ridge = REGULARISATION * jnp.trace(k) / len(k) * jnp.eye(len(k), dtype=k.dtype)
        prediction = KERNEL.matrix(x[None], support_x) @ jnp.linalg.solve(k + ridge, support_y)
        return jnp.sum((y - prediction[0]) ** 2) / 2

    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(support_x, x, y)
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=(1, 2)))
    return jnp.einsum("l,lmd->md", 1 / norms, gradients)


def plain(wide, *arrays):
    with jax.enable_x64(wide):
        return jax.block_until_ready(_plain(*arrays))


SIDES = {
    "closed form": (True, closed_form),
    "plain float32": (False, functools.partial(plain, False)),
    "plain float64": (True, functools.partial(plain, True)),
}


def arrays_for(points, wide):
    with jax.enable_x64(wide):
        return [jnp.asarray(a, jnp.float64 if wide else jnp.float32) for a in problem(points)]


def measure(points, repeats):
    arrays = {side: arrays_for(points, wide) for side, (wide, _) in SIDES.items()}
    results = {side: np.asarray(step(*arrays[side])) for side, (_, step) in SIDES.items()}
    times = {side: [] for side in SIDES}
    for _ in range(3):
        for side, (_, step) in SIDES.items():
            step(*arrays[side])
            for _ in range(repeats):
                start = time.perf_counter()
                step(*arrays[side])
                times[side].append(time.perf_counter() - start)
    seconds = {side: statistics.median(found) for side, found in times.items()}
    exact = results["plain float64"]
    return {
        "points": points,
        "seconds": seconds,
        "ratio": {
            side: seconds[side] / seconds["closed form"] for side in SIDES if side != "closed form"
        },
        "relative_difference": float(
            np.linalg.norm(results["closed form"] - exact) / np.linalg.norm(exact)
        ),
    }


def peak_mb(points, side):
    """What one step adds to the memory of a fresh process."""
    command = [sys.executable, __file__, "--memory-of", side, "--points", str(points)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(points, side):
    wide, step = SIDES[side]
    arrays = arrays_for(points, wide)
    before = peak_memory_mb()
    step(*arrays)
    print(peak_memory_mb() - before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[10, 100, 500])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory-of", choices=SIDES)
    options = parser.parse_args()
    if options.memory_of:
        print_peak(options.points[0], options.memory_of)
        return
    found = []
    for points in options.points:
        row = measure(points, repeats=10 if points < 500 else 1)
        row["peak_mb"] = {side: peak_mb(points, side) for side in SIDES}
        found.append(row)
        times = ", ".join(
            f"{side} {row['seconds'][side] * 1e3:.1f} ms, {row['peak_mb'][side]:.0f} MB"
            for side in SIDES
        )
        ratios = ", ".join(f"{ratio:.1f}x over {side}" for side, ratio in row["ratio"].items())
        print(f"m={points}: {times}")
        print(f"    {ratios}; difference {row['relative_difference']:.1e}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
