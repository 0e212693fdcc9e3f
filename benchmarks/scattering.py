"""The scattering transform against Kymatio's PyTorch front end, in one run.

    python benchmarks/scattering.py --kymatio ENVIRONMENT/bin/python

Kymatio 0.3 needs SciPy below 1.15, hence an environment of its own:
`pip install torch kymatio==0.3.0 "scipy<1.15"`. 512 pictures, J = 2, L = 8, without normalisation;
both sides take turns, and the coefficients are compared. In a turn a side runs three times, so that
its threads and memory are awake, and its best time counts; of the turns the median. Ours has the
pictures as `features_of` has them: calls of 16 pieces, in threads. Kymatio gets them in batches
of 32 and of 512, and its better time counts.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from limbeck.features.base import PIECES, side_by_side
from limbeck.features.scattering import Scattering

SHAPES = [(28, 28, 1), (32, 32, 3)]
COUNT, ROUNDS, REPEATS = 512, 3, 3
RESULTS = Path(__file__).parent / "results" / "scattering.json"


class Peer:
    """The process that has Kymatio."""

    def __init__(self, python):
        script = Path(__file__).with_name("scattering_kymatio.py")
        self.process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]


def ours(shape, vjp):
    """A function of the pictures, in the pieces, calls and threads that the library uses."""
    scattering = Scattering(shape=shape, group=None)

    def forward_and_back(x):
        value, back = jax.vjp(scattering.coefficients, x)
        return value, back(jnp.ones_like(value))[0]

    @jax.jit
    def call(pieces):
        return jax.lax.map(forward_and_back if vjp else scattering.coefficients, pieces)

    def run(x):
        pieces = x.reshape(-1, PIECES, scattering.batch, x.shape[1])
        start = time.perf_counter()
        found = side_by_side(call, pieces)
        return time.perf_counter() - start, found

    return run


def compare(peer, shape, vjp, folder):
    height, width, channels = shape
    x = np.random.default_rng(0).random((COUNT, height * width * channels), np.float32)
    planes = x.reshape(COUNT, height, width, channels).transpose(0, 3, 1, 2)
    np.save(folder / "x.npy", np.ascontiguousarray(planes))
    request = {"x": str(folder / "x.npy"), "side": height, "vjp": vjp}
    run, mine, theirs = ours(shape, vjp), [], {32: [], COUNT: []}
    _, found = run(x)
    peer.seconds(**request, batch=COUNT, out=str(folder / "y.npy"))
    expected = np.load(folder / "y.npy").reshape(COUNT, -1)
    coefficients = np.concatenate([some[0] if vjp else some for some in found])
    difference = np.abs(coefficients.reshape(COUNT, -1) - expected).max()
    for _ in range(ROUNDS):
        time.sleep(1)  # until the threads of the other side sleep too
        mine.append(min(run(x)[0] for _ in range(REPEATS)))
        for batch, times in theirs.items():
            times.append(min(peer.seconds(**request, batch=batch) for _ in range(REPEATS)))
    best = min(statistics.median(times) for times in theirs.values())
    return {
        "shape": shape,
        "what": "forward and VJP" if vjp else "forward",
        "limbeck_ms": round(1e3 * statistics.median(mine) / COUNT, 3),
        "kymatio_ms": round(1e3 * best / COUNT, 3),
        "ratio": round(best / statistics.median(mine), 1),
        "largest_difference": float(difference),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kymatio", required=True, help="python of an environment that has it")
    peer = Peer(parser.parse_args().kymatio)
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            compare(peer, shape, vjp, Path(folder)) for shape in SHAPES for vjp in (False, True)
        ]
    for row in rows:
        print(row)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
