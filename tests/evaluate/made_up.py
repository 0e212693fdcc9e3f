"""Small sources and bundles to evaluate, made without fitting anything."""

import dataclasses
import math

import numpy as np

from limbeck.data.column import Column
from limbeck.data.schema import ImageShape, Schema
from limbeck.data.source import Source
from limbeck.features import kernels
from limbeck.features.inputs import inputs_of
from limbeck.release.bundle import Distilled

TABLE = Schema(
    classes=(0, 1),
    columns=(
        Column("age", "numeric", minimum=0, maximum=1),
        Column("ward", "categorical", values=("a", "b", "c")),
        Column("dose", "numeric", minimum=0, maximum=1),
    ),
)
PICTURES = Schema(classes=(0, 1, 2), image=ImageShape(12, 12, 1))


def rows_of(n, seed=0):
    """Encoded rows of the table; the class depends on age and, a little, on the ward."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 3, n)
    age, dose = rng.random(n), rng.random(n)
    x = np.column_stack([age, np.eye(3)[ward], dose]).astype(np.float32)
    y = (age + 0.1 * (ward == 0) + 0.1 * rng.normal(size=n) > 0.5).astype(np.int64)
    return x, y


def pictures_of(n, seed=0):
    """A bright bar: across, down, or none; somewhere, on noise."""
    rng = np.random.default_rng(seed)
    x, y = 0.3 * rng.random((n, 12, 12)), rng.integers(0, 3, n)
    at = rng.integers(2, 10, n)
    for i in range(n):
        if y[i] == 0:
            x[i, at[i]] = 1
        if y[i] == 1:
            x[i, :, at[i]] = 1
    return x.reshape(n, -1).astype(np.float32), y


def source_of(schema, x, y):
    def read(size):
        for start in range(0, len(y), size):
            yield x[start : start + size], y[start : start + size]

    return Source("made up", schema, read)


def bundle_of(schema, x, y, kernel="fc-ntk"):
    classes = len(schema.classes)
    return Distilled(
        method="kip",
        settings={},
        schema=schema,
        points=x,
        y_soft=np.eye(classes, dtype=np.float32)[y],
        kernel=kernels.to_json(kernel, kernels.for_schema(kernel, schema, inputs_of(schema))),
        regularisation=1e-3,
        budget=None,
        events=(),
        epsilon=math.inf,
        seeded=True,
    )


def changed(task, **fields):
    return dataclasses.replace(task, **fields)
