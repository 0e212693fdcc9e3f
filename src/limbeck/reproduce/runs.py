"""Running a cell: our implementation of its method, scored by its evaluator.

Settings are the defaults of the method, the same for all data sets, or with `published` those that
the appendix of the paper has for the cell.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from limbeck.data.named import NAMED
from limbeck.data.private import PrivateData, open_private
from limbeck.data.source import open_source
from limbeck.distill.dp_kip import DPKIP
from limbeck.distill.kip import KIP
from limbeck.distill.readout import Readout
from limbeck.errors import UserError
from limbeck.evaluate import classical, krr, networks
from limbeck.evaluate.score import Score
from limbeck.evaluate.task import Rows, Task, read
from limbeck.generate.g_pate import GPATE
from limbeck.generate.gan import DPGAN, GAN
from limbeck.generate.moment_matching import DPHP, DPMERF, DPNTK
from limbeck.models import convnets
from limbeck.privacy.budget import Budget
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle
from limbeck.reproduce import protocol
from limbeck.reproduce.cells import (
    LABELLED,
    OUR_PROTOCOL,
    OURS,
    TWICE,
    Cell,
    published_settings,
)

DELTA = 1e-5
NAMES = {"batch_size": "batch"}  # theirs, where ours differ

# KIP runs until little changes.
METHODS: dict[str, Callable[[Cell], Any]] = {
    "kip-fc-ntk": lambda cell: KIP(per_class=_points(cell), steps=500),
    "kip-scatternet": lambda cell: KIP(
        per_class=_points(cell),
        features="scatter",
        learning_rate=0.1,
        steps=2000 if cell.per_class == 1 else 600,
    ),
    "kip-e-ntk": lambda cell: KIP(
        per_class=_points(cell), features="e-ntk", learning_rate=0.1, steps=1000
    ),
    "kip-pfs": lambda cell: KIP(
        per_class=_points(cell), features="perceptual", learning_rate=0.1, steps=200
    ),
    "dp-kip-fc-ntk": lambda cell: DPKIP(per_class=_points(cell)),
    "dp-kip-scatternet": lambda cell: _scatternet(cell),
    OURS: lambda cell: Readout(per_class=_points(cell)),
    "dp-ntk": lambda cell: DPNTK(
        records=_records(cell), widths=(int(cell.run_settings.get("width", 800)),)
    ),
    LABELLED: lambda cell: DPNTK(records=_records(cell), label_with="readout"),
    "dp-merf": lambda cell: DPMERF(records=_records(cell)),
    "dp-hp": lambda cell: DPHP(records=_records(cell)),
    "g-pate": lambda cell: GPATE(records=_records(cell)),
    "dp-gan": lambda cell: DPGAN(records=_records(cell)),
    "gan": lambda cell: GAN(records=_records(cell)),
}
REAL = "real"  # not a method: real records, as many a class as the others have points

EVALUATORS: dict[str, Callable[[Task], list[Score]]] = {
    "krr": krr.evaluate,
    "convnet": networks.convnet,
    "logreg": classical.logreg,
    "mlp": classical.mlp,
    "mean-of-12": classical.tabular,
    "cnn": networks.cnn,
    **dict.fromkeys(
        ("logistic-regression", "adaboost", "bagging", "multi-layer-perceptron", "mean-of-4"),
        classical.credit,
    ),
}
# Names of evaluators and metrics, where ours differ.
EVALUATED = {"multi-layer-perceptron": "mlp"}
METRICS = {
    "roc": "roc_auc",
    "prc": "average_precision",
    "f1": "f1_weighted",
    "auroc": "roc_auc",
    "auprc": "average_precision",
}


def runnable(cell: Cell) -> bool:
    """Whether we have the method, the data and the evaluator."""
    if cell.table == TWICE:
        return cell.method in {*METHODS, REAL} and cell.data in protocol.PREPARED
    known = cell.method in METHODS or (cell.method == REAL and cell.evaluator == "convnet")
    if (
        cell.method == "g-pate" and cell.setting
    ):  # variations of the paper's: benchmarks/g_pate_ablation.py
        return False
    return known and cell.data in NAMED and cell.evaluator in EVALUATORS


def release(cell: Cell) -> tuple[object, ...]:
    """What is made for a cell: the same for all that only score it otherwise."""
    return cell.method, cell.data, cell.per_class, cell.epsilon, cell.setting


def run(
    cell: Cell, seed: int, published: bool = False, progress: Progress = silent
) -> dict[str, Any]:
    """What was found, with which settings, in how many seconds."""
    if cell.table == TWICE:
        return _of_table(cell, seed, published, progress)
    if cell.method == REAL:
        start = time.monotonic()
        return {**_real(cell, seed, progress), "seconds": round(time.monotonic() - start, 1)}
    config = METHODS[cell.method](cell)
    if published:
        config = _as_published(config, cell)
    release = config, cell.data, cell.epsilon, seed, progress
    _, made = _made(*release)
    scores = _scores(EVALUATORS[cell.evaluator], *release)
    return _found(cell, scores, METRICS, config, made)


@functools.lru_cache(maxsize=1)
def _made(
    config: Any, data: str, epsilon: float | None, seed: int, progress: Progress
) -> tuple[Bundle, float]:
    """The bundle and its seconds; the last one is kept, for cells that only score it otherwise."""
    start = time.monotonic()
    budgets = () if epsilon is None else (Budget(epsilon=epsilon, delta=DELTA),)
    bundle = config.fit(open_private(data), *budgets, seed=seed, progress=progress)
    return bundle, time.monotonic() - start


@functools.lru_cache(maxsize=1)
def _scores(
    evaluator: Callable[[Task], list[Score]],
    config: Any,
    data: str,
    epsilon: float | None,
    seed: int,
    progress: Progress,
) -> list[Score]:
    """Of all metrics, and of all classifiers if there are several."""
    bundle, _ = _made(config, data, epsilon, seed, progress)
    return evaluator(Task(bundle, open_source(data, split="test"), seed=seed, progress=progress))


def _found(
    cell: Cell, scores: list[Score], metrics: dict[str, str], config: Any, seconds: float
) -> dict[str, Any]:
    wanted = (
        EVALUATED.get(cell.evaluator, cell.evaluator),
        metrics.get(cell.metric, cell.metric),
    )
    value = next(s.value for s in scores if (s.evaluator, s.metric) == wanted)
    return {
        "value": round(value * (100 if cell.percent else 1), 4),
        "settings": dataclasses.asdict(config) if config else {},
        "seconds": round(seconds, 1),
    }


def _of_table(cell: Cell, seed: int, published: bool, progress: Progress) -> dict[str, Any]:
    """By the protocol of the paper, or by ours; one run has the scores of all metrics."""
    ours = cell.setting == OUR_PROTOCOL
    same = dataclasses.replace(cell, metric="", theirs=0, spread="")
    scores, config, made = _scored(same, ours, published, seed, progress)
    return _found(cell, scores, METRICS if ours else protocol.METRICS, config, made)


@functools.lru_cache(maxsize=1)
def _scored(
    cell: Cell, ours: bool, published: bool, seed: int, progress: Progress
) -> tuple[list[Score], Any, float]:
    """The scores of the twelve classifiers, the settings of the method, and its seconds."""
    schema = open_source(cell.data).schema
    if ours:
        train, test = (read(open_source(cell.data, split=split)) for split in ("train", "test"))
        private = open_private(cell.data)
    else:
        train, test = protocol.prepared(cell.data, seed)
        unknown = dataclasses.replace(schema, public_rows=None)
        labels = np.array(schema.classes)[train.y]
        private = PrivateData.from_arrays(train.x, labels, unknown)
    start, config, most = time.monotonic(), None, min(len(train.y), protocol.MOST_ROWS)
    if cell.method == REAL:
        chosen = np.random.default_rng(seed).permutation(len(train.y))[:most]
        rows = Rows(train.x[chosen], train.y[chosen])
    else:
        config = dataclasses.replace(METHODS[cell.method](cell), records=most)
        if published:
            config = _as_published(config, cell)
        budget = Budget(epsilon=cell.epsilon or 1.0, delta=DELTA)
        bundle = config.fit(private, budget, seed=seed, progress=progress)
        rows = Rows(bundle.points, bundle.y_soft.argmax(axis=1))
    made = time.monotonic() - start
    return classical.twelve(rows, test, len(schema.classes), seed, progress), config, made


def _real(cell: Cell, seed: int, progress: Progress) -> dict[str, Any]:
    """The ConvNet on so many real pictures a class, drawn at random."""
    train, test = (read(open_source(cell.data, split=split)) for split in ("train", "test"))
    shape = open_source(cell.data).schema.image_shape
    rng, classes = np.random.default_rng(seed), np.unique(train.y)
    chosen = np.arange(len(train.y))
    if cell.per_class is not None:
        drawn = [rng.permutation(np.flatnonzero(train.y == label)) for label in classes]
        chosen = np.concatenate([rows[: cell.per_class] for rows in drawn])
    labels = np.eye(len(classes), dtype=np.float32)[train.y[chosen]]
    training = networks.CONVNET
    net = convnets.train(train.x[chosen], labels, shape, training, seed, progress=progress)
    right = convnets.predict(net, test.x, shape).argmax(axis=1) == test.y
    return {"value": round(100 * float(np.mean(right)), 4), "settings": training._asdict()}


def _as_published(config: Any, cell: Cell) -> Any:
    found = published_settings(cell)
    if not isinstance(config, KIP | DPKIP | DPNTK):
        raise UserError("--published is for KIP, DP-KIP and DP-NTK; others run with our settings")
    if not found:
        raise UserError(f"{cell.table} {cell.label}: the paper gives no settings for {cell.method}")
    if isinstance(config, DPNTK):
        return _of_table_5(config, found)
    changes: dict[str, Any] = {NAMES.get(name, name): value for name, value in found.items()}
    changes["batch"] = int(changes["batch"])
    changes["schedule"] = "constant"
    if isinstance(config, KIP):  # the paper counts epochs; a step of ours sees all records
        changes["steps"] = int(changes.pop("epochs"))
    else:
        changes["coordinates"] = "all"
        if config.features == "scatter":
            changes["clip_in"] = "pixels"
    return dataclasses.replace(config, **changes)


def _of_table_5(config: DPNTK, found: dict[str, Any]) -> DPNTK:
    """The network and the training of DP-NTK's appendix; their layer norm is not here."""
    widths = (found[name] for name in ("width", "second_width") if name in found)
    return dataclasses.replace(
        config,
        net="cnn" if found["architecture"].startswith("cnn") else "fc",
        widths=tuple(map(int, widths)),
        steps=int(found["iterations"]),
        latent_dim=int(found["code_dimension"]),
        batch=int(found["batch_size"]),
        learning_rate=found["learning_rate"],
    )


def _records(cell: Cell) -> int:
    """Of a generator: as many as MNIST has, or so many a class of ten."""
    return 60_000 if cell.per_class is None else 10 * cell.per_class


def _scatternet(cell: Cell) -> DPKIP:
    share = float(cell.run_settings.get("corrupted", 0)) / 100
    config = DPKIP(per_class=_points(cell), features="scatter", corrupt=share)
    if "clip" in cell.run_settings:
        return dataclasses.replace(config, clip=float(cell.run_settings["clip"]))
    return config


def _points(cell: Cell) -> int:
    assert cell.per_class is not None
    return cell.per_class
