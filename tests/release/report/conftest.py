"""The bundles that the page is made of, and the page."""

import pytest
from releases import COLOURED, PICTURES, TABLE, generated, release

from limbeck.release.bundle import Bundle

BUNDLES = {
    "table": (release, TABLE, 25),
    "pictures": (release, PICTURES, 36),
    "coloured": (release, COLOURED, 3),
    "generated table": (generated, TABLE, 25),
    "generated pictures": (generated, PICTURES, 36),
    "generated coloured": (generated, COLOURED, 3),
}


@pytest.fixture(params=BUNDLES)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    make, schema, points = BUNDLES[request.param]
    return make(schema, points)
