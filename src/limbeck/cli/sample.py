"""`limbeck sample`."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limbeck.cli.console import AsJson, print_json
from limbeck.errors import UserError

if TYPE_CHECKING:
    from limbeck.bundle import Bundle

SUFFIXES = (".csv", ".parquet", ".npz")


def sample(
    bundle: Annotated[Path, typer.Argument(help="A bundle of generated records.")],
    records: Annotated[int, typer.Option("-n", min=1, help="How many records to draw.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .csv or .parquet for tables, .npz (x and y) for any records.",
        ),
    ],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draw the same records each time.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw more records from the generator of a bundle; that costs no privacy."""
    _check(output, overwrite)
    from limbeck import card
    from limbeck.bundle import load

    release = load(bundle)
    if release.schema.is_image and output.suffix != ".npz":
        raise UserError(f"{output}: images are written as x and y; let the name end in .npz")
    _write(release.sample(records, seed), output)
    warnings = card.warnings(release)
    if as_json:
        told = {"bundle": str(bundle), "records": records, "file": str(output)}
        print_json({**told, "warnings": warnings})
        return
    print("\n".join([*warnings, f"{records} records: {output}"]))
    if release.budget is None:
        print("NOT PRIVATE, like the bundle: they carry no privacy guarantee.")
    else:
        print(f"That cost no privacy: the statement of {bundle} covers them, as its own records.")


def _check(output: Path, overwrite: bool) -> None:
    """Refuse a file that cannot be or that is in use; better before the work than after it."""
    if output.suffix not in SUFFIXES:
        raise UserError(f"{output}: let the name end in one of {', '.join(SUFFIXES)}")
    try:
        if output.is_dir():
            raise UserError(f"{output} cannot be written: it is a folder")
        if output.exists() and not overwrite:
            raise UserError(f"{output} exists; choose another file, or replace it with --overwrite")
        if output.name in OWN and (output.parent / "release.json").exists():
            raise UserError(f"{output} belongs to a bundle; choose another name")
    except OSError as error:
        raise UserError(f"{output} cannot be written ({error.strerror})") from None


OWN = ("data.npz", "data.parquet", "generator.npz")


def _write(drawn: "Bundle", output: Path) -> None:
    """Whole or not at all; a file in its place stays until then."""
    import numpy as np

    try:
        with tempfile.TemporaryDirectory(prefix=".limbeck-", dir=output.parent) as scratch:
            written = Path(scratch, f"new{output.suffix}")
            if output.suffix == ".csv":
                drawn.to_frame().to_csv(written, index=False)
            elif output.suffix == ".parquet":
                drawn.to_frame().to_parquet(written, index=False)
            else:
                arrays = drawn.to_arrays()
                np.savez_compressed(written, x=arrays["x"], y=arrays["y"])
            written.replace(output)
    except OSError as error:
        raise UserError(f"{output} cannot be written ({error.strerror or error})") from None
