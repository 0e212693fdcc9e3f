"""Points that are images, as PNG inside the page."""

import base64
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.release import preview
from limbeck.release.bundle import Bundle, Generated

MOST_PER_CLASS = 10
MOST_CLASSES = 100
MOST_PIXELS = 1_000_000  # of all images together; a pixel of noise is up to four bytes of page
MOST_WEIGHTS = 3


@dataclass(frozen=True)
class Tile:
    """One image: what it is, in words; its PNG as an address; its largest label weights.

    A generated image has one class and no weights.
    """

    alt: str
    source: str
    weights: str


@dataclass(frozen=True)
class Row:
    """The images of one class, of which there may be more than are shown."""

    value: object
    count: int
    tiles: list[Tile]


def rows(bundle: Bundle) -> list[Row]:
    """The first points of each class that has any."""
    classes = bundle.schema.classes[:MOST_CLASSES]
    labels, most = bundle.y_soft.argmax(axis=1), most_per_class(bundle.schema)
    found = []
    for position, value in enumerate(classes):
        places = np.flatnonzero(labels == position)
        if len(places):
            tiles = _tiles(bundle, value, places[:most], len(places))
            found.append(Row(value, len(places), tiles))
    return found


def most_per_class(schema: Schema) -> int:
    """How many images of a class are shown: fewer where they are large or the classes many."""
    pixels = min(len(schema.classes), MOST_CLASSES) * schema.width
    return max(1, min(MOST_PER_CLASS, MOST_PIXELS // pixels))


def _tiles(bundle: Bundle, value: object, places: NDArray[np.int64], count: int) -> list[Tile]:
    images = preview.normalised(bundle.points[places].reshape(-1, *bundle.schema.image_shape))
    return [
        Tile(
            alt=f"class {value}, {bundle.noun[:-1]} {number} of {count}",
            source=_address(image),
            weights=_weights(bundle, place),
        )
        for number, (place, image) in enumerate(zip(places, images, strict=True), start=1)
    ]


def _address(image: NDArray[np.uint8]) -> str:
    from PIL import Image

    grey = image.shape[-1] == 1
    written = io.BytesIO()
    Image.fromarray(image[..., 0] if grey else image).save(written, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}"


def _weights(bundle: Bundle, place: int) -> str:
    """The classes of the largest label weights in words; a generated image has one class."""
    if isinstance(bundle, Generated):
        return ""
    schema, weights = bundle.schema, bundle.y_soft[place]
    order = np.argsort(-weights, kind="stable")[:MOST_WEIGHTS]
    return ", ".join(f"{schema.classes[place]} ({weights[place]:.2f})" for place in order)
