"""Reading a folder of class folders of images.

    faces/no/001.png   faces/no/002.png   faces/yes/001.png   ...

The classes are those of the schema; a folder beyond them is refused, never added.
"""

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from limbeck.data.encode import Batch, encode_images
from limbeck.data.schema import Schema
from limbeck.data.values import Lookup
from limbeck.errors import UserError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")


def folder_batches(folder: Path, schema: Schema, size: int) -> Iterator[Batch]:
    """Encoded batches of a folder, class by class in the order of the schema."""
    if not schema.is_image:
        raise UserError(f"{folder.name}: a folder of images, but the schema has no [image]")
    files = iter(_files(folder, schema))
    while piece := list(islice(files, size)):
        images = np.stack([read_image(folder, path, schema.image_shape) for path, _ in piece])
        yield encode_images(schema, images), np.array([y for _, y in piece], dtype=np.int32)


def class_folders(folder: Path) -> list[Path]:
    """The folders inside, sorted by name; hidden ones are left out."""
    found = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if not found:
        raise UserError(
            f"{folder.name}: has no class folders; put the images of each class in a folder "
            "of its own, named as the class"
        )
    return found


def image_files(folder: Path) -> Iterator[Path]:
    """The images in one class folder, sorted by name."""
    return (path for path in sorted(folder.iterdir()) if path.suffix.lower() in EXTENSIONS)


def read_image(
    folder: Path, path: Path, shape: tuple[int, int, int] | None = None
) -> NDArray[np.uint8]:
    """One image as `[h, w, c]`; refused where it is damaged, huge or not of the declared size."""
    from PIL import Image

    where = f"{folder.name}: {path.relative_to(folder)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as image:
                if shape is not None:
                    _check_size(where, image.size, shape)
                _check_depth(where, image.mode)
                grey = shape[2] == 1 if shape else image.mode in ("1", "L", "LA")
                pixels = np.asarray(image.convert("L" if grey else "RGB"), dtype=np.uint8)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise UserError(f"{where}: far too large for an image of a data set; remove it") from None
    except (OSError, ValueError, SyntaxError, EOFError):
        raise UserError(f"{where}: not a readable image; it is damaged or truncated") from None
    return pixels.reshape(*pixels.shape[:2], -1)


def _check_depth(where: str, mode: str) -> None:
    """Refuse deep images, which Pillow would silently cut at 255 instead of rescaling."""
    if mode == "F" or mode.startswith("I"):
        raise UserError(f"{where}: has more than 8 bits a pixel; rescale the images to 0..255")


def _check_size(where: str, size: tuple[int, int], shape: tuple[int, int, int]) -> None:
    """Compare the size in the image's header before its pixels are decompressed."""
    width, height = size
    if (height, width) != shape[:2]:
        raise UserError(
            f"{where}: the image is {height}×{width}, but the schema's [image] declares "
            f"{shape[0]}×{shape[1]}; resize the images or correct the schema"
        )


def _files(folder: Path, schema: Schema) -> Iterator[tuple[Path, int]]:
    """Every image file with its class number."""
    lookup = Lookup(schema.classes)
    numbered: list[tuple[int, Path]] = []
    for path in class_folders(folder):
        number = lookup.find(path.name)
        if number is None:
            raise UserError(
                f"{folder.name}: the folder {path.name!r} is not a class of the schema; "
                "declare it in [label] classes, or remove it"
            )
        numbered.append((number, path))
    for number, path in sorted(numbered):
        yield from ((file, number) for file in image_files(path))
