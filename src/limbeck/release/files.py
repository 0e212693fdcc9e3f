"""Writing whole files or nothing, and reading the files of a bundle that a stranger made."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from limbeck.data.arrays import read_npz
from limbeck.data.parse import Section
from limbeck.errors import UserError

RELEASE = "release.json"


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file or a folder in a temporary folder, then rename it to `path`.

    What is at `path` stays there until then, and is restored if the rename fails.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".limbeck-", dir=path.parent) as scratch:
            written, replaced = Path(scratch, f"new{path.suffix}"), Path(scratch, "old")
            write(written)
            if written.is_dir():
                _replace_folder(written, path, replaced)
            else:
                written.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror or error})") from None


def _replace_folder(written: Path, folder: Path, replaced: Path) -> None:
    try:
        if folder.exists():
            folder.rename(replaced)
        written.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda new: new.write_text(text, encoding="utf-8"))


def check_destination(folder: Path, overwrite: bool) -> None:
    """Refuse a destination that exists or cannot be written, before any work is done."""
    try:
        exists = folder.exists()
        above = next((p for p in folder.absolute().parents if p.exists()), folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror})") from None
    if not above.is_dir():
        raise UserError(f"{folder} cannot be written: {above} is not a folder")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"{folder} cannot be written: you may not write in {above}")
    if not exists:
        return
    if not overwrite:
        raise UserError(f"{folder} exists; choose another folder, or replace it with --overwrite")
    if not (folder / RELEASE).is_file():
        raise UserError(f"{folder} is not a bundle and is not overwritten; choose another folder")


def in_a_bundle(path: Path) -> bool:
    """Whether the path lies in a bundle, at any depth, with links followed."""
    return any((above / RELEASE).exists() for above in path.resolve().parents)


def read_arrays(folder: Path, name: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of a file of a bundle, within the limits for archives from strangers."""
    return read_npz(existing(folder, name))


def read_release(folder: Path) -> Section:
    """The content of release.json."""
    try:
        content = json.loads(existing(folder, RELEASE).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{RELEASE} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{RELEASE} is not JSON") from None
    return Section(RELEASE, content)


def existing(folder: Path, name: str) -> Path:
    """The path of a file that every bundle of its kind has."""
    try:
        if (folder / name).is_file():
            return folder / name
    except OSError as error:
        raise UserError(f"{folder} cannot be read ({error.strerror})") from None
    raise NotABundleError(
        f"{folder} is not a bundle: it has no {name}; "
        "`limbeck distill` and `limbeck generate` make one"
    )


class NotABundleError(UserError):
    """A folder lacks a file that a bundle has."""
