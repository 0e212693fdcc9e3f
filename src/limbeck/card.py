"""The words and the picture of a bundle."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.budget import Adjacency

if TYPE_CHECKING:
    from limbeck.bundle import Bundle

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "the addition or removal of any one record",
    Adjacency.REPLACE: "the replacement of any one record by any other",
}


def statement(bundle: "Bundle") -> str:
    """What is promised, and what stands against it first."""
    return "\n".join([*_warnings(bundle), _promise(bundle)])


def _warnings(bundle: "Bundle") -> list[str]:
    lines = []
    if bundle.schema.drafted:
        lines.append(
            "WARNING: the schema (bounds, categories, classes) was drafted from the private rows; "
            "what it reveals is not covered by the guarantee below."
        )
    if bundle.seeded:
        lines.append(
            "SEEDED: NOT FOR RELEASE. The noise came from a seed, and whoever knows the seed can "
            "take it off."
        )
    rows = bundle.schema.public_rows
    if bundle.budget and rows and bundle.budget.delta > 1 / rows:
        lines.append(
            f"WARNING: δ = {bundle.budget.delta:g} is more than one over the {rows} rows, so the "
            "guarantee would allow a whole record to be published."
        )
    return lines


def _promise(bundle: "Bundle") -> str:
    if bundle.budget is None:
        return (
            "NOT PRIVATE. These points were made without noise. They carry no privacy guarantee "
            "and must not be published."
        )
    budget = bundle.budget
    return (
        f"The {len(bundle.points)} points are (ε = {_up(bundle.epsilon)}, δ = {_up(budget.delta)})-"
        f"differentially private with respect to {_NEIGHBOURS[budget.adjacency]} of the private "
        f"data (budget: ε = {budget.epsilon:g}). The whole release, with all its files, is covered."
        f" Assumed public: the schema, the settings of the method, and {_rows(bundle)}. A record "
        "is any that fits the schema, and one person is assumed to have one record."
    )


def _rows(bundle: "Bundle") -> str:
    assert bundle.budget is not None
    if bundle.schema.public_rows or bundle.budget.adjacency is Adjacency.REPLACE:
        return "the number of rows"
    return "not the number of rows, which is protected too"


def _up(number: float) -> str:
    """Five digits, never rounded down."""
    digits = 4 - math.floor(math.log10(number))
    return f"{math.ceil(number * 10**digits * (1 - 1e-12)) / 10**digits:g}"


def readme(bundle: "Bundle") -> str:
    """A data card; the privacy statement first."""
    schema = bundle.schema
    record = (
        "{} × {} pixels, {} channel(s)".format(*schema.image_shape)
        if schema.is_image
        else f"{len(schema.columns)} columns: {', '.join(c.name for c in schema.columns)}"
    )
    events = "\n".join(
        f"| {e.purpose} | {e.draws} | {e.sampling_probability:g} | "
        f"{'none' if e.noise_multiplier is None else format(e.noise_multiplier, '.4f')} |"
        for e in bundle.events
    )
    table = "" if schema.is_image else TABLE_FILES
    return README.format(
        statement=statement(bundle),
        method=bundle.method,
        points=len(bundle.points),
        record=record,
        classes=", ".join(map(str, schema.classes)),
        label=schema.label,
        events=events,
        kernel=bundle.kernel["name"],
        table=table,
    )


TABLE_FILES = """- `data.parquet`: the points in the schema's own units and category names, the \
label, and one weight a class. Rounded to the schema, so a reader sees valid rows; the exact \
points that the classifier uses are in `data.npz`.
"""

README = """# Distilled data

## Privacy

{statement}

| measurement | draws of noise | sampling probability | noise multiplier |
|---|---|---|---|
{events}

## What it is

{points} points made by `{method}`, not records of anybody. A record is {record}; the label
`{label}` has the classes {classes}.

The points are meant to be used together with their kernel (`{kernel}`): kernel ridge regression
on them classifies new records. They are not a sample of the data, and a network trained from
scratch on so few points does much worse.

    import limbeck
    bundle = limbeck.load(".")
    bundle.x, bundle.y, bundle.to_frame()
    bundle.classifier().predict(new_rows)

## Files

- `data.npz`: `x` (images in units of pixels, 0 to 255 and beyond; tables as encoded rows), `y`,
  and `y_soft`, one weight a class.
{table}- `release.json`: method, settings, budget, all events of the ledger, schema, versions.
- `preview.png`: the points as a picture.
"""


def preview(bundle: "Bundle", path: Path) -> None:
    """A grid of images, one row a class; or the rows of a table as a heat map."""
    from PIL import Image

    if bundle.schema.is_image:
        tiles = _normalised(bundle.x.reshape(len(bundle.points), *bundle.schema.image_shape))
        picture = _grid(tiles, bundle.y_soft.argmax(axis=1))
    else:
        picture = (255 * np.clip(bundle.points, 0, 1)).astype(np.uint8)[..., None]
    picture = picture.repeat(3 // picture.shape[-1], axis=-1)
    zoom = max(1, 480 // max(picture.shape[:2]))
    Image.fromarray(picture.repeat(zoom, axis=0).repeat(zoom, axis=1)).save(path)


def _normalised(tiles: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each tile stretched to the full range, for the eye."""
    low = tiles.min(axis=(1, 2, 3), keepdims=True)
    high = tiles.max(axis=(1, 2, 3), keepdims=True)
    return (255 * (tiles - low) / np.maximum(high - low, 1e-6)).astype(np.uint8)


def _grid(tiles: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A row of at most ten tiles for each class, with a white line between."""
    rows = [tiles[labels == label][:10] for label in np.unique(labels)]
    across = max(len(row) for row in rows)
    height, width, channels = tiles.shape[1:]
    grid = np.full(
        (len(rows) * (height + 1) - 1, across * (width + 1) - 1, channels), 255, np.uint8
    )
    for i, row in enumerate(rows):
        for j, tile in enumerate(row):
            top, left = i * (height + 1), j * (width + 1)
            grid[top : top + height, left : left + width] = tile
    return grid
