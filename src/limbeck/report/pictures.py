"""Points that are pictures, as PNG inside the page."""

import base64
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limbeck import card
from limbeck.bundle import Bundle
from limbeck.data.schema import Schema

MOST_PER_CLASS = 10
MOST_CLASSES = 100
MOST_PIXELS = 1_000_000  # of all pictures together; a pixel of noise is up to four bytes of page
MOST_WEIGHTS = 3


@dataclass(frozen=True)
class Tile:
    """One picture: what it is, in words; its PNG as an address; its largest label weights.

    A generated picture has one class and no weights.
    """

    alt: str
    source: str
    weights: str


@dataclass(frozen=True)
class Row:
    """The pictures of one class, of which there may be more than are shown."""

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
    """How many pictures of a class are shown: fewer where they are large or the classes many."""
    pixels = min(len(schema.classes), MOST_CLASSES) * schema.width
    return max(1, min(MOST_PER_CLASS, MOST_PIXELS // pixels))


def _tiles(bundle: Bundle, value: object, places: NDArray[np.int64], count: int) -> list[Tile]:
    pictures = card.normalised(bundle.points[places].reshape(-1, *bundle.schema.image_shape))
    return [
        Tile(
            alt=f"class {value}, {card.noun(bundle)[:-1]} {number} of {count}",
            source=_address(picture),
            weights="" if bundle.is_generated else _largest(bundle.schema, bundle.y_soft[place]),
        )
        for number, (place, picture) in enumerate(zip(places, pictures, strict=True), start=1)
    ]


def _address(picture: NDArray[np.uint8]) -> str:
    from PIL import Image

    grey = picture.shape[-1] == 1
    written = io.BytesIO()
    Image.fromarray(picture[..., 0] if grey else picture).save(written, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}"


def _largest(schema: Schema, weights: NDArray[np.float32]) -> str:
    """The classes of the largest weights, in words."""
    order = np.argsort(-weights, kind="stable")[:MOST_WEIGHTS]
    return ", ".join(f"{schema.classes[place]} ({weights[place]:.2f})" for place in order)
