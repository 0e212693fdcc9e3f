"""One DP-KIP step on scattering features: ours against vmap(grad) through the same transform.

    python benchmarks/dp_kip_scatter.py [--points 10 100] [--ways readout features pixels]

B = 500 records of 28 × 28 pixels, 10 classes, normalised gradients, support points in all pixels,
or with --share in the low frequencies that DP-KIP learns for `pixels`. Ours is a whole step as the
library takes it: batch, clipped sum in float64, pull-back; the records' features are there, as they
are after the first step, and the plain definition gets them too. It differentiates the loss of
every record through the transform, in float32, as many records at a time as memory allows, and for
100 points only for the first `PLAIN` of the 500 records; its time is scaled up. The sides take
turns, and the ratio is that of the medians.
"""

import argparse
import functools
import json
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from limbeck.measure.records import (
    FeatureRecords,
    PixelRecords,
    PulledRecords,
    ReadoutRecords,
    Regression,
    centred_one_hot,
)

from limbeck.distill.kip import through_features, through_readout
from limbeck.features import canvas as canvases
from limbeck.features.base import features_of
from limbeck.features.canvas import Canvas
from limbeck.features.inputs import ImageInputs
from limbeck.features.scattering import Scattering
from limbeck.privacy.clipping import Clip

RECORDS, SHAPE, CLASSES, REGULARISATION = 500, (28, 28, 1), 10, 1e-4
PLAIN, ROUNDS = {10: 500, 100: 50}, 3
PHI = Scattering(shape=SHAPE)
KINDS = {"readout": ReadoutRecords, "features": FeatureRecords, "pixels": PixelRecords}
RESULTS = Path(__file__).parent / "results" / "dp_kip_scatter.json"


def problem(points, share):
    """Support coordinates, the public problem, features and labels of the records."""
    rng = np.random.default_rng(0)
    inputs = ImageInputs(shape=SHAPE, share=share)
    labels = np.arange(points) % CLASSES
    regression = Regression(
        PHI,
        inputs,
        Canvas.plain(inputs.basis, points),
        centred_one_hot(labels, CLASSES),
        REGULARISATION,
    )
    x = inputs.from_records(rng.random((RECORDS, inputs.dimension)))
    start = rng.normal(size=(points, inputs.basis.shape[1])).astype(np.float32)
    return start, regression, features_of(PHI, x), rng.integers(CLASSES, size=RECORDS)


def ours(way, regression, features, labels):
    """A step: support coordinates in, the sum of normalised gradients out, in coordinates."""
    pulled = way == "pixels" and PulledRecords.suits(regression, RECORDS)
    kind = PulledRecords if pulled else KINDS[way]
    records = kind.__new__(kind)  # without reading a private set
    records.problem, records.labels, records.features = regression, labels, features
    everyone = np.arange(RECORDS)

    def clipped(support):
        return records.clipped_sum(support, everyone, Clip())

    through = {"readout": through_readout, "features": through_features}.get(way)
    return through(regression, clipped) if through else clipped


def plain(regression, z, phi, y):
    """Gradients in coordinates of each record's loss, normalised and added up."""
    plane, support_y = regression.canvas, jnp.asarray(regression.support_y, jnp.float32)

    def loss(z, phi, y):
        support = PHI(canvases.draw(plane, z))
        k = support @ support.T
        m = k + REGULARISATION * jnp.trace(k) / len(k) * jnp.eye(len(k))
        return jnp.sum((y - phi @ support.T @ jnp.linalg.solve(m, support_y)) ** 2) / 2

    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(z, phi, y)
    norms = jnp.sqrt(jnp.sum(gradients**2, axis=(1, 2)))
    return jnp.einsum("l,lmp->mp", 1 / norms, gradients)


def seconds(function, *arguments):
    start = time.perf_counter()
    jax.block_until_ready(function(*arguments))
    return time.perf_counter() - start


def compare(points, way, share):
    z, regression, features, labels = problem(points, share)
    count = PLAIN.get(points, 50)
    y = np.asarray(centred_one_hot(labels, CLASSES), np.float32)
    reference = jax.jit(functools.partial(plain, regression))
    piece = max(1, 500 // points)  # records at a time, for memory

    def theirs():
        return [
            reference(z, features[i : i + piece], y[i : i + piece]) for i in range(0, count, piece)
        ]

    step = ours(way, regression, features, labels)
    difference = None
    if way == "pixels" and count == RECORDS:
        expected, found = sum(theirs()), step(z)
        difference = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    else:
        jax.block_until_ready(theirs()[:1]), step(z)
    mine, plainly = [], []
    for _ in range(ROUNDS):
        mine.append(seconds(step, z))
        plainly.append(seconds(theirs) * RECORDS / count)
    row = {
        "points": points,
        "way": way,
        "coordinates": int(z.shape[1]),
        "limbeck_ms": round(1e3 * statistics.median(mine), 1),
        "vmap_grad_ms": round(1e3 * statistics.median(plainly), 1),
        "ratio": round(statistics.median(plainly) / statistics.median(mine), 1),
    }
    return row if difference is None else {**row, "relative_difference": difference}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--ways", nargs="+", default=list(KINDS))
    options = parser.parse_args()
    rows = []
    for points in options.points:
        for way in options.ways:
            shares = [1.0, 0.5 * (points / CLASSES) ** -0.15] if way == "pixels" else [1.0]
            for share in shares:
                rows.append(compare(points, way, share))
                print(rows[-1], flush=True)
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    done = {(row["points"], row["way"]) for row in rows}
    kept = [row for row in before if (row["points"], row["way"]) not in done]
    ways = list(KINDS)
    rows = sorted([*kept, *rows], key=lambda row: (row["points"], ways.index(row["way"])))
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
