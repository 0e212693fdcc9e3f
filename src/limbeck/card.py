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
    return "\n".join([*warnings(bundle), promise(bundle)])


def warnings(bundle: "Bundle") -> list[str]:
    """What stands against the promise; empty for a release as it should be."""
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


def promise(bundle: "Bundle") -> str:
    """The guarantee in words that can be quoted, or that there is none."""
    if bundle.budget is None:
        return (
            "NOT PRIVATE. These points were made without noise. They carry no privacy guarantee "
            "and must not be published."
        )
    budget = bundle.budget
    return (
        f"The {len(bundle.points)} points are (ε = {rounded_up(bundle.epsilon)}, "
        f"δ = {rounded_up(budget.delta)})-differentially private with respect to "
        f"{_NEIGHBOURS[budget.adjacency]} of the private data (budget: "
        f"ε = {budget.epsilon:g}). The whole release, with all its files, is covered."
        f" Assumed public: {_assumed(bundle)} A record is any that fits the schema, and one "
        "person is assumed to have one record."
    )


def _assumed(bundle: "Bundle") -> str:
    assert bundle.budget is not None
    if bundle.schema.public_rows or bundle.budget.adjacency is Adjacency.REPLACE:
        return "the schema, the settings of the method and the number of rows."
    return "the schema and the settings of the method. The number of rows is protected too."


def rounded_up(number: float) -> str:
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
        nobody=", not records of anybody" if bundle.budget else "",
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

{points} points made by `{method}`{nobody}. A record is {record}; the label
`{label}` has the classes {classes}.

The points are meant to be used together with their kernel (`{kernel}`): kernel ridge regression
on them, with the weights of `y_soft` as labels, classifies new records. They are not a sample of
the data. A network, a forest or any other model trained from scratch on so few points does much
worse, and their look or statistics say nothing about single records.

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
    """Images, one column a class; or the rows of a table as a heat map."""
    if bundle.schema.is_image:
        _picture_of_images(bundle, path)
    else:
        _picture_of_table(bundle, path)


def _picture_of_images(bundle: "Bundle", path: Path) -> None:
    from PIL import Image

    tiles = normalised(bundle.x.reshape(len(bundle.points), *bundle.schema.image_shape))
    grid = _grid(tiles, bundle.y_soft.argmax(axis=1))
    grid = grid.repeat(3 // grid.shape[-1], axis=-1)
    zoom = max(1, round(800 / grid.shape[1]))
    Image.fromarray(grid.repeat(zoom, axis=0).repeat(zoom, axis=1)).save(path)


def _picture_of_table(bundle: "Bundle", path: Path) -> None:
    from matplotlib.figure import Figure

    names = bundle.schema.coordinate_names
    shown = bundle.points[:MOST_ROWS, :MOST_COLUMNS]
    height, width = shown.shape
    figure = Figure(figsize=(2 + 0.3 * width, 1.5 + 0.3 * height), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(np.clip(shown, 0, 1), cmap="viridis", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(width), [_text(name) for name in names[:width]], rotation=90)
    axes.set_yticks(range(height), [_text(value) for value in bundle.y[:height]])
    axes.set_ylabel(_text(bundle.schema.label))
    figure.colorbar(image, label="encoded value")
    figure.savefig(path, dpi=100)


MOST_ROWS, MOST_COLUMNS = 40, 60


def _text(value: object) -> str:
    """As it is, even where it holds the sign that starts a formula."""
    return str(value).replace("$", r"\$")


def normalised(tiles: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each tile stretched to the full range, for the eye."""
    low = tiles.min(axis=(1, 2, 3), keepdims=True)
    high = tiles.max(axis=(1, 2, 3), keepdims=True)
    return (255 * (tiles - low) / np.maximum(high - low, 1e-6)).astype(np.uint8)


def _grid(tiles: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A column of at most ten tiles for each class, with a white line between."""
    columns = [tiles[labels == label][:10] for label in np.unique(labels)]
    height, width, channels = tiles.shape[1:]
    down = max(map(len, columns)) * (height + 1) - 1
    grid = np.full((down, len(columns) * (width + 1) - 1, channels), 255, np.uint8)
    for j, column in enumerate(columns):
        for i, tile in enumerate(column):
            top, left = i * (height + 1), j * (width + 1)
            grid[top : top + height, left : left + width] = tile
    return grid
