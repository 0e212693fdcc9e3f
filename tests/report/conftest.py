"""The bundles that the page is made of, and the page."""

import pytest
from releases import COLOURED, PICTURES, TABLE, release

from limbeck.bundle import Bundle


@pytest.fixture(params=["table", "pictures", "coloured"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    schema, points = {"table": (TABLE, 25), "pictures": (PICTURES, 36), "coloured": (COLOURED, 3)}[
        request.param
    ]
    return release(schema, points)
