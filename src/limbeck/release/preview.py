"""The preview of a bundle: its first points as an image."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limbeck.release.card import MOST_TILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from limbeck.release.bundle import Bundle

STAMP = "NOT FOR RELEASE"


def draw(bundle: "Bundle", path: Path) -> None:
    """Draw images in one column per class, distilled rows as a heat map, records as histograms.

    The preview of a bundle without a guarantee says that it is not for release.
    """
    if bundle.schema.is_image:
        _draw_images(bundle, path)
        return
    figure = _histograms(bundle) if bundle.noun == "records" else _heat_map(bundle)
    if not bundle.is_private:
        figure.text(0.5, 0.5, STAMP, color="red", fontsize=16, ha="center", va="center")
    figure.savefig(path, dpi=100)


def _draw_images(bundle: "Bundle", path: Path) -> None:
    from PIL import Image, ImageDraw

    labels = bundle.y_soft.argmax(axis=1)
    grid = _grid([_tiles(bundle, labels == label) for label in np.unique(labels)])
    grid = grid.repeat(3 // grid.shape[-1], axis=-1)
    zoom = max(1, round(800 / grid.shape[1]))
    image = Image.fromarray(grid.repeat(zoom, axis=0).repeat(zoom, axis=1))
    if not bundle.is_private:
        ImageDraw.Draw(image).text((4, 4), STAMP, fill="red", font_size=max(10, image.width // 16))
    image.save(path)


def _tiles(bundle: "Bundle", chosen: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The first of the chosen points, as tiles."""
    points = bundle.points[np.flatnonzero(chosen)[:MOST_TILES]]
    return normalised(points.reshape(len(points), *bundle.schema.image_shape))


def _heat_map(bundle: "Bundle") -> "Figure":
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
    return figure


MOST_ROWS, MOST_COLUMNS = 40, 60


def _histograms(bundle: "Bundle") -> "Figure":
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
    return figure


MOST_PANELS, PANELS_ACROSS, MOST_NAMES = 24, 6, 8


def _bars(panel: "Axes", cells: list[Any], domain: Sequence[object]) -> None:
    """How often each declared value occurs; the bars are named if they are few."""
    counts = Counter(cells)
    panel.bar(range(len(domain)), [counts[value] for value in domain])
    named = list(domain) if len(domain) <= MOST_NAMES else []
    panel.set_xticks(range(len(named)), [_short(value) for value in named], rotation=90)


def _short(value: object) -> str:
    text = str(value)
    return _text(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")


MOST_LETTERS = 24


def _text(value: object) -> str:
    """The text with the sign escaped that starts a formula."""
    return str(value).replace("$", r"\$")


def normalised(tiles: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Each tile stretched to the full range of brightness."""
    low = tiles.min(axis=(1, 2, 3), keepdims=True)
    high = tiles.max(axis=(1, 2, 3), keepdims=True)
    return (255 * (tiles - low) / np.maximum(high - low, 1e-6)).astype(np.uint8)


def _grid(columns: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Columns of tiles with white lines between them."""
    height, width, channels = columns[0].shape[1:]
    down = max(map(len, columns)) * (height + 1) - 1
    grid = np.full((down, len(columns) * (width + 1) - 1, channels), 255, np.uint8)
    for j, column in enumerate(columns):
        for i, tile in enumerate(column):
            top, left = i * (height + 1), j * (width + 1)
            grid[top : top + height, left : left + width] = tile
    return grid
