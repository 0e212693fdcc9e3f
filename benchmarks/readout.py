"""Readout distillation: beside the papers' best cells, and how accuracy depends on ε, points, rows.

    LIMBECK_DATA=... python benchmarks/readout.py [--parts pictures tables ablations]

Default settings, δ = 1e-5, scores on the test splits. Results are kept in
benchmarks/results/readout.json; what is already there is not run again. The features of a set of
pictures are computed once and shared by its runs, so their seconds are without them.
`ablations` also draws docs/images/readout.png.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from remember import remember
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import limbeck
from limbeck.data.source import open_source
from limbeck.distill import matching
from limbeck.distill import readout as method
from limbeck.evaluate import krr
from limbeck.evaluate.task import Task
from limbeck.features.base import features_of
from limbeck.measure import readout as measured
from limbeck.models import ridge

RESULTS = Path(__file__).parent / "results" / "readout.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "readout.png"
SETS = ("mnist", "fashion_mnist", "cifar10")
# Table 2 of DP-KIP-ScatterNet: its own column.
PAPER = dict(
    zip(
        [(name, m, eps) for name in SETS for m in (1, 10) for eps in (1, 10)],
        [94.7, 96.1, 96.3, 97.4, 77.5, 82.1, 83.3, 86.2, 46.6, 50.4, 48.6, 54.4],
        strict=True,
    )
)
TABLES = ("adult", "credit", "covtype", "intrusion")
# What is varied, and for each value the cell.
ABLATIONS = {
    "ε": {eps: ("fashion_mnist", 10, eps, None) for eps in (0.1, 0.3, 1, 3, 10)},
    "points a class": {m: ("fashion_mnist", m, 1, None) for m in (1, 2, 5, 10, 50)},
    "rows": {
        n: ("fashion_mnist", 10, 1, None if n == 60000 else n) for n in (2000, 6000, 20000, 60000)
    },
}


def cells(part):
    """(set, points a class, ε, rows or None)."""
    if part == "pictures":
        for name, m, eps in PAPER:
            yield name, m, eps, None
    if part == "tables":
        for name in TABLES:
            yield name, 10, 1, None
            # So little noise that there is none: no guarantee worth the name, for comparison only.
            yield name, 10, 100, None
    if part == "ablations":
        for ablation in ABLATIONS.values():
            yield from ablation.values()


def first(private, rows):
    """The first rows only."""
    parts, left = [], rows
    for x, y in private.reveal():
        parts.append((x[:left], y[:left]))
        left -= len(parts[-1][1])
    x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
    return limbeck.PrivateData.from_arrays(x, y, private.schema)


def run(name, per_class, epsilon, rows, seed):
    private = limbeck.open(name)
    if rows is not None:
        private = first(private, rows)
    start = time.monotonic()
    budget = limbeck.Budget(epsilon=float(epsilon), delta=1e-5)
    bundle = limbeck.Readout(per_class=per_class).fit(private, budget, seed=seed)
    seconds = time.monotonic() - start
    scores = krr.evaluate(Task(bundle, open_source(name, split="test")))
    found = {score.metric: round(100 * score.value, 2) for score in scores}
    return {**found, "residual": round(LAST.residual, 4), "seconds": round(seconds, 1)}


class Watched(matching.Search):
    """Tells how near the points came to the readout."""

    def run(self, *arguments):
        global LAST
        LAST = self
        return super().run(*arguments)


LAST = None


def logistic_regression(name):
    """On all real rows, without privacy."""
    train, test = (
        [
            np.concatenate(part)
            for part in zip(*open_source(name, split=split).batches(), strict=True)
        ]
        for split in ("train", "test")
    )
    if len(train[1]) > 50000:  # it takes very long otherwise
        chosen = np.random.default_rng(0).permutation(len(train[1]))[:50000]
        train = [part[chosen] for part in train]
    model = LogisticRegression(max_iter=1000).fit(*train)
    found = {"accuracy": round(100 * model.score(*test), 2)}
    if len(model.classes_) == 2:
        found["roc_auc"] = round(
            100 * roc_auc_score(test[1], model.predict_proba(test[0])[:, 1]), 2
        )
    return found


def label(name, per_class, epsilon, rows):
    which = f", {rows} rows" if rows else ""
    return f"{name}, {per_class} a class, eps {epsilon:g}{which}"


def draw(found):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3), layout="constrained")
    accuracy = {row["cell"]: row["accuracy"] for row in found if row["seed"] == 0}
    for axes, (title, cells_of) in zip(
        figure.subplots(1, 3, sharey=True), ABLATIONS.items(), strict=True
    ):
        found_here = [accuracy[label(*cell)] for cell in cells_of.values()]
        axes.semilogx(list(cells_of), found_here, "o-")
        axes.set_xticks(list(cells_of), [f"{value:g}" for value in cells_of])
        axes.minorticks_off()
        axes.set_xlabel(title)
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("test accuracy, %")
    figure.savefig(PICTURE, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["pictures", "tables", "ablations"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", default="", help="cells whose label has this in it")
    options = parser.parse_args()
    measured.features_of = ridge.features_of = remember(features_of)
    method.Search = Watched
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    done = {(row["cell"], row["seed"]) for row in found}
    for part in options.parts:
        chosen = [cell for cell in cells(part) if options.only in label(*cell)]
        seeds = [0] if part == "ablations" else options.seeds
        for name in dict.fromkeys(cell[0] for cell in chosen):
            for seed in seeds:
                for cell in [cell for cell in chosen if cell[0] == name]:
                    if (label(*cell), seed) in done:
                        continue
                    row = {"cell": label(*cell), "seed": seed, **run(*cell, seed)}
                    found.append(row)
                    done.add((row["cell"], seed))
                    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
                    print(row, flush=True)
            if part == "tables":
                print(name, "logistic regression on the real rows", logistic_regression(name))
        for cell in chosen:
            rows = [row for row in found if row["cell"] == label(*cell)]
            for metric in ("accuracy", "balanced_accuracy", "roc_auc"):
                if ours := [row[metric] for row in rows if metric in row]:
                    spread = f"{min(ours):.2f} to {max(ours):.2f}"
                    paper = PAPER.get(cell[:3], "") if metric == "accuracy" else ""
                    print(label(*cell), metric, f"{statistics.mean(ours):.2f} ({spread})", paper)
        if part == "ablations":
            draw(found)


if __name__ == "__main__":
    main()
