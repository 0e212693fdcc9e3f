"""Table 3 of G-PATE: directions that perturbations are projected to, and the number of teachers.

    python benchmarks/g_pate_ablation.py [--on mnist] [--epsilon 1] [--paper]

Each cell is a generator with 2000 teachers and the default settings but one, or with `--paper` the
paper's algorithm but one. It is scored by logistic regression and by a small ConvNet that are
trained on its records and tested on real ones. One seed a cell. Cells are added to
benchmarks/results/g_pate_ablation.json as they are done, and those that are there are not run
again.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import limbeck
from limbeck.data.source import open_source
from limbeck.evaluate import networks
from limbeck.generate.g_pate import GPATE, PAPER
from limbeck.models import convnets

RESULTS = Path(__file__).parent / "results" / "g_pate_ablation.json"


def cells(width):
    """The settings that change, from one cell to the next."""
    for dimensions in (64, 5, 10, 20, width):  # the default first
        yield {"dimensions": dimensions}
    for teachers in (500, 1000, 4000):
        yield {"teachers": teachers}


def scored(bundle, test):
    """Accuracies on the test split."""
    batches = list(test.batches(4096))
    x, y = (np.concatenate(part) for part in zip(*batches, strict=True))
    labels, shape = bundle.y_soft.argmax(axis=1), bundle.schema.image_shape
    linear = LogisticRegression(max_iter=200).fit(bundle.points[:5000], labels[:5000])
    net = convnets.train(bundle.points, bundle.y_soft, shape, networks.FAST_CONVNET, 0)
    found = convnets.predict(net, x, shape).argmax(axis=1)
    return {"logreg": linear.score(x, y), "convnet": float(np.mean(found == y))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", default="mnist")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--teachers", type=int, default=2000)
    parser.add_argument("--paper", action="store_true")
    options = parser.parse_args()
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    private = limbeck.open(options.on)
    for changed in cells(private.schema.width):
        asked = {**vars(options), **changed}
        if any(cell["asked"] == asked for cell in done):
            continue
        settings = {"steps": options.steps, "teachers": options.teachers, **changed}
        config = GPATE(**{**(PAPER if options.paper else {}), **settings})
        bundle = config.fit(private, limbeck.Budget(epsilon=options.epsilon), seed=0)
        cell = {"asked": asked, **scored(bundle, open_source(options.on, None, "test"))}
        print(json.dumps(cell), flush=True)
        done.append(cell)
        RESULTS.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
