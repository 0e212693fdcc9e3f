"""What the parts of a generator of tables are worth, each left out in turn.

    python benchmarks/table_generators.py [--data adult] [--seeds 0,1] [--steps 1000]

DP-MERF at ε = 1, δ = 1e-5: as it is; with one sigmoid for all coordinates, as the papers have it,
in place of a softmax a column; without the pairs of columns; and with numbers as they are instead
of their places. Prints the mean over the twelve classifiers on the test split and how alike the
columns are, and writes benchmarks/results/table_generators.json.
"""

import argparse
import contextlib
import json
from pathlib import Path
from unittest import mock

import numpy as np

from limbeck.data.private import open_private
from limbeck.data.source import open_source
from limbeck.evaluate import classical, similarity
from limbeck.evaluate.task import Task
from limbeck.features.mixed import Mixed
from limbeck.features.quantiles import QuantileMap
from limbeck.generate import moment_matching
from limbeck.generate.moment_matching import DPMERF
from limbeck.models import generators as nets
from limbeck.privacy.budget import Budget

RESULTS = Path(__file__).parent / "results" / "table_generators.json"


def one_sigmoid(schema, shape, key):
    """The generator of the papers' kind."""
    inputs = shape.latent_dim + len(schema.classes)
    return nets.TableGenerator(((schema.width, False),), inputs, shape.widths, key)


def without_pairs(columns, inner):
    return Mixed(columns=columns, inner=inner, shares=(0.5, 0.5, 0.0))


VARIANTS = {
    "as it is": contextlib.nullcontext,
    "one sigmoid": lambda: mock.patch.object(nets, "net_for", one_sigmoid),
    "without pairs": lambda: mock.patch.object(moment_matching, "Mixed", without_pairs),
    "without places": lambda: mock.patch.object(
        moment_matching, "_places", return_value=QuantileMap()
    ),
}


def scores(data, steps, seed):
    config = DPMERF(steps=steps)
    bundle = config.fit(open_private(data), Budget(epsilon=1.0, delta=1e-5), seed=seed)
    task = Task(bundle, open_source(data, split="test"), seed=seed)
    found = {score.metric: score.value for score in similarity.evaluate(task)}
    for score in classical.tabular(task):
        if score.metric in ("roc_auc", "average_precision", "f1_weighted"):
            found[f"{score.evaluator}, {score.metric}"] = score.value
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="adult")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    results = {"data": options.data, "steps": options.steps, "seeds": options.seeds}
    for name, changed in VARIANTS.items():
        with changed():
            runs = [scores(options.data, options.steps, int(s)) for s in options.seeds.split(",")]
        results[name] = {
            metric: float(np.mean([run[metric] for run in runs])) for metric in runs[0]
        }
        shown = {m: v for m, v in results[name].items() if "," not in m or m.startswith("mean")}
        print(name, *(f"{metric} {v:.3f}" for metric, v in shown.items()), sep="; ", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
