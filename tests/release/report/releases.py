"""Small bundles, put together without fitting anything."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from limbeck.data.encode import nearest_records
from limbeck.data.schema import Schema
from limbeck.models.state import GeneratorState
from limbeck.privacy.budget import Adjacency, Budget
from limbeck.privacy.ledger import Entry
from limbeck.release.bundle import Bundle, Distilled, Generated

TABLE = Schema.loads(
    """
    [label]
    name = "ill"
    classes = ["no", "yes"]
    [columns.age]
    kind = "integer"
    minimum = 0
    maximum = 100
    [columns.dose]
    kind = "numeric"
    minimum = 0
    maximum = 10
    [columns.visits]
    kind = "integer"
    minimum = 0
    maximum = 4
    [columns.smoker]
    kind = "boolean"
    [columns.ward]
    kind = "categorical"
    values = ["north", "south", "<b>west</b> & east"]
    """
)
PICTURES = Schema.loads("rows = 1797\n[label]\nclasses = [3, 7, 9]\n[image]\nheight = 6\nwidth = 5")
COLOURED = Schema.loads(
    "[label]\nclasses = ['cat', 'dog']\n[image]\nheight = 4\nwidth = 7\nchannels = 3"
)

EVENTS = (
    Entry(purpose="class counts", draws=1, noise_multiplier=20.0),
    Entry(purpose="gradient", draws=30, noise_multiplier=30.0),
)


def release(schema: Schema, points: int, **changed: Any) -> Bundle:
    """A private bundle of random points, of each class in turn."""
    draw = np.random.default_rng(0)
    classes = len(schema.classes)
    weights = 0.1 + 0.8 * np.eye(classes)[np.arange(points) % classes]
    given: dict[str, Any] = {
        "method": "readout",
        "settings": {"per_class": points // classes, "labels": "soft"},
        "schema": schema,
        "points": draw.uniform(-0.1, 1.1, (points, schema.width)).astype(np.float32),
        "y_soft": (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32),
        "kernel": {"name": "fc-ntk", "dimension": schema.width},
        "regularisation": 1e-3,
        "budget": Budget(epsilon=1.0),
        "events": EVENTS,
        "epsilon": 0.99991,
        "seeded": False,
    }
    return Distilled(**{**given, **changed})


def generated(schema: Schema, records: int, **changed: Any) -> Bundle:
    """The same points as records of a generator."""
    made = release(schema, records)
    given: dict[str, Any] = {
        **{field.name: getattr(made, field.name) for field in dataclasses.fields(Bundle)},
        "method": "dp-ntk",
        "points": nearest_records(schema, made.points),
        "y_soft": np.eye(len(schema.classes), dtype=np.float32)[made.y_soft.argmax(axis=1)],
        "generator": GeneratorState({"code": 5}, {"w": np.ones(3, np.float32)}),
    }
    return Generated(**{**given, **changed})


def not_private(schema: Schema, points: int, make: Callable[..., Bundle] = release) -> Bundle:
    exact = (Entry(purpose="gradient", draws=5, noise_multiplier=None),)
    return make(schema, points, budget=None, epsilon=math.inf, events=exact, method="kip")


def replacing(schema: Schema, points: int) -> Bundle:
    return release(schema, points, budget=Budget(epsilon=1.0, adjacency=Adjacency.REPLACE))
