"""Tasks to evaluate."""

import pytest
from made_up import PICTURES, TABLE, bundle_of, pictures_of, rows_of, source_of

from limbeck.evaluate.task import Task


@pytest.fixture
def table_task():
    return Task(
        bundle_of(TABLE, *rows_of(60, 1)),
        source_of(TABLE, *rows_of(300, 2)),
        source_of(TABLE, *rows_of(400, 3)),
    )


@pytest.fixture
def picture_task():
    return Task(
        bundle_of(PICTURES, *pictures_of(60, 1)),
        source_of(PICTURES, *pictures_of(200, 2)),
        source_of(PICTURES, *pictures_of(300, 3)),
        fast=True,
    )
