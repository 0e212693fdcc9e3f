"""The words and the picture of a bundle."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limbeck.privacy.budget import Adjacency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
            f"NOT PRIVATE. These {noun(bundle)} were made without noise. They carry no privacy "
            "guarantee and must not be published."
        )
    budget = bundle.budget
    return (
        f"The {len(bundle.points)} {noun(bundle)} are (ε = {rounded_up(bundle.epsilon)}, "
        f"δ = {rounded_up(budget.delta)})-differentially private with respect to "
        f"{_NEIGHBOURS[budget.adjacency]} of the private data (budget: "
        f"ε = {budget.epsilon:g}). The whole release, with all its files, {_covered(bundle)}."
        f" Assumed public: {_assumed(bundle)} A record is any that fits the schema, and one "
        "person is assumed to have one record."
    )


def _covered(bundle: "Bundle") -> str:
    if bundle.is_generated:
        return "and any further records drawn from its generator are covered"
    return "is covered"


def title(bundle: "Bundle") -> str:
    """What kind of release it is."""
    return "Generated data" if bundle.is_generated else "Distilled data"


def noun(bundle: "Bundle") -> str:
    """What its points are called."""
    return "records" if bundle.is_generated else "points"


def _assumed(bundle: "Bundle") -> str:
    assert bundle.budget is not None
    if bundle.schema.public_rows or bundle.budget.adjacency is Adjacency.REPLACE:
        return "the schema, the settings of the method and the number of rows."
    return "the schema and the settings of the method. The number of rows is protected too."


def rounded_up(number: float) -> str:
    """Five digits, never rounded down."""
    digits = 4 - math.floor(math.log10(number))
    return f"{math.ceil(number * 10**digits * (1 - 1e-12)) / 10**digits:g}"


def multiplier(noise: float | None, mechanism: str) -> str:
    """The noise of an event in words; Gaussian unless it says otherwise."""
    if noise is None:
        return "none"
    return f"{noise:.4f}" if mechanism == "gaussian" else f"{noise:.4f} ({mechanism.title()})"


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
        f"{multiplier(e.noise_multiplier, e.mechanism)} |"
        for e in bundle.events
    )
    about = _about_generated(bundle) if bundle.is_generated else _about_distilled(bundle)
    return README.format(
        title=title(bundle),
        statement=statement(bundle),
        method=bundle.method,
        points=len(bundle.points),
        noun=noun(bundle),
        nobody=", not records of anybody" if bundle.budget else "",
        record=record,
        classes=", ".join(map(str, schema.classes)),
        label=schema.label,
        events=events,
        about=about,
    )


def _about_distilled(bundle: "Bundle") -> str:
    assert bundle.kernel is not None
    return DISTILLED.format(
        kernel=bundle.kernel["name"],
        look=", and their look or statistics say nothing about single records"
        if bundle.budget
        else "",
        table="" if bundle.schema.is_image else DISTILLED_TABLE,
    )


def _about_generated(bundle: "Bundle") -> str:
    is_image = bundle.schema.is_image
    return GENERATED.format(
        noisy="noisy " if bundle.budget else "",
        free=", which costs no privacy" if bundle.budget else "",
        x="images, whole numbers 0 to 255" if is_image else "encoded rows",
        more="more.npz" if is_image else "more.csv",
        table="" if is_image else GENERATED_TABLE,
        picture=f"the first {MOST_TILES} of each class" if is_image else "how the columns lie",
    )


README = """# {title}

## Privacy

{statement}

| measurement | draws of noise | sampling probability | noise multiplier |
|---|---|---|---|
{events}

## What it is

{points} {noun} made by `{method}`{nobody}. A record is {record}; the label
`{label}` has the classes {classes}.

{about}- `release.json`: method, settings, budget, all events of the ledger, schema, versions.
"""

DISTILLED = """\
The points are meant to be used together with their kernel (`{kernel}`): kernel ridge regression
on them, with the weights of `y_soft` as labels, classifies new records. They are not a sample of
the data. A network, a forest or any other model trained from scratch on so few points does much
worse{look}.

    import limbeck
    bundle = limbeck.load(".")
    bundle.x, bundle.y, bundle.to_frame()
    bundle.classifier().predict(new_rows)

## Files

- `data.npz`: `x` (images in units of pixels, 0 to 255 and beyond; tables as encoded rows), `y`,
  and `y_soft`, one weight a class.
{table}- `preview.png`: the points as a picture.
"""

DISTILLED_TABLE = """\
- `data.parquet`: the points in the schema's own units and category names, the label, and one
  weight a class. Rounded to the schema, so a reader sees valid rows; the exact points that the
  classifier uses are in `data.npz`.
"""

GENERATED = """\
They are a sample of a model: a generator, which was learned from {noisy}measurements of the private
data. They are good for training models, by `x` and `y` like any other records. They are not for
counting people: how often something occurs among them is what the model says, what is rare may be
missing, and what never occurs may be there. Test on real records what was trained on these.

    import limbeck
    bundle = limbeck.load(".")
    bundle.x, bundle.y, bundle.to_frame()

The generator draws as many more as one likes{free}: `bundle.sample(1000)`, or

    limbeck sample . -n 1000 -o {more}

## Files

- `data.npz`: `x` ({x}) and `y`.
{table}- `generator.npz`: the generator as plain data: `config`, in JSON, and arrays of weights.
- `preview.png`: {picture}, as a picture.
"""

GENERATED_TABLE = """\
- `data.parquet`: the records in the schema's own units and category names, and the label.
"""


def preview(bundle: "Bundle", path: Path) -> None:
    """Images, one column a class; a table as a heat map, or the columns of many rows."""
    if bundle.schema.is_image:
        _picture_of_images(bundle, path)
    elif bundle.is_generated:
        _picture_of_columns(bundle, path)
    else:
        _picture_of_table(bundle, path)


def _picture_of_images(bundle: "Bundle", path: Path) -> None:
    from PIL import Image

    labels = bundle.y_soft.argmax(axis=1)
    grid = _grid([_tiles(bundle, labels == label) for label in np.unique(labels)])
    grid = grid.repeat(3 // grid.shape[-1], axis=-1)
    zoom = max(1, round(800 / grid.shape[1]))
    Image.fromarray(grid.repeat(zoom, axis=0).repeat(zoom, axis=1)).save(path)


def _tiles(bundle: "Bundle", chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The first of those that are chosen."""
    points = bundle.points[np.flatnonzero(chosen)[:MOST_TILES]]
    return normalised(points.reshape(len(points), *bundle.schema.image_shape))


MOST_TILES = 10


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


def _picture_of_columns(bundle: "Bundle", path: Path) -> None:
    from matplotlib.figure import Figure

    schema, frame = bundle.schema, bundle.to_frame()
    columns = schema.columns[: MOST_PANELS - 1]
    across = min(PANELS_ACROSS, len(columns) + 1)
    down = -(-(len(columns) + 1) // across)
    figure = Figure(figsize=(0.5 + 2.4 * across, 0.5 + 1.8 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    _bars(panels[0], frame[schema.label].tolist(), schema.classes)
    for panel, column in zip(panels[1:], columns, strict=False):
        cells = frame[column.name]
        if column.is_number:
            panel.hist(cells, bins=20, range=(column.minimum, column.maximum))
        else:
            _bars(panel, cells.tolist(), column.domain)
    for panel, name in zip(panels, [schema.label, *(c.name for c in columns)], strict=False):
        panel.set_title(_short(name), fontsize=9)
        panel.tick_params(labelsize=7)
    for panel in panels[len(columns) + 1 :]:
        panel.axis("off")
    hidden = len(schema.columns) - len(columns)
    left_out = f"; {hidden} more columns are not shown" if hidden else ""
    figure.suptitle(f"{len(frame)} generated records{left_out}", fontsize=10)
    figure.savefig(path, dpi=100)


MOST_PANELS, PANELS_ACROSS, MOST_NAMES = 24, 6, 8


def _bars(panel: "Axes", cells: list[Any], domain: Sequence[object]) -> None:
    """How often each declared value occurs; few of them are named."""
    counts = Counter(cells)
    panel.bar(range(len(domain)), [counts[value] for value in domain])
    named = list(domain) if len(domain) <= MOST_NAMES else []
    panel.set_xticks(range(len(named)), [_short(value) for value in named], rotation=90)


def _short(value: object) -> str:
    text = str(value)
    return _text(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")


MOST_LETTERS = 24


def _text(value: object) -> str:
    """As it is, even where it holds the sign that starts a formula."""
    return str(value).replace("$", r"\$")


def normalised(tiles: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each tile stretched to the full range, for the eye."""
    low = tiles.min(axis=(1, 2, 3), keepdims=True)
    high = tiles.max(axis=(1, 2, 3), keepdims=True)
    return (255 * (tiles - low) / np.maximum(high - low, 1e-6)).astype(np.uint8)


def _grid(columns: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Columns of tiles, with a white line between."""
    height, width, channels = columns[0].shape[1:]
    down = max(map(len, columns)) * (height + 1) - 1
    grid = np.full((down, len(columns) * (width + 1) - 1, channels), 255, np.uint8)
    for j, column in enumerate(columns):
        for i, tile in enumerate(column):
            top, left = i * (height + 1), j * (width + 1)
            grid[top : top + height, left : left + width] = tile
    return grid
