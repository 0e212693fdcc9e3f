"""Small schemas and files that the tests of the data layer share."""

from pathlib import Path

import pytest

from limbeck.data.schema import Schema
from limbeck.data.source import open_source

PATIENTS = """
[label]
name = "ill"
classes = [0, 1]

[columns.age]
kind = "integer"
minimum = 0
maximum = 100

[columns.ward]
kind = "categorical"
values = ["north", "south"]
"""

PICTURES = """
[label]
classes = ["cat", "dog"]

[image]
height = 4
width = 5
"""


@pytest.fixture
def patients() -> Schema:
    return Schema.loads(PATIENTS)


@pytest.fixture
def pictures() -> Schema:
    return Schema.loads(PICTURES)


@pytest.fixture
def read_all():
    """Reads every batch of a source and gives the list of them."""

    def read(path: Path, schema: Schema, size: int = 3, **options):
        return list(open_source(path, schema, **options).batches(size))

    return read
