"""`limbeck sample`."""

from pathlib import Path
from typing import Annotated

import typer

from limbeck.cli.console import AsJson, print_json
from limbeck.errors import UserError

STAMP = "NOT-FOR-RELEASE"
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
    from limbeck.release import card
    from limbeck.release.bundle import Generated, load
    from limbeck.release.files import write_whole

    release = load(bundle)
    if not isinstance(release, Generated):
        raise UserError(f"{bundle}: a distilled set is complete: it has no generator")
    if release.schema.is_image and output.suffix != ".npz":
        raise UserError(f"{output}: images are written as x and y; let the name end in .npz")
    if output.suffix == ".csv" and not release.is_private and STAMP not in output.name:
        output = output.with_suffix(f".{STAMP}.csv")  # a comment would break readers of CSV
        _check(output, overwrite)
    write_whole(output, release.sample(records, seed).write_data)
    warnings = card.warnings(release)
    if as_json:
        told = {"bundle": str(bundle), "records": records, "file": str(output)}
        print_json({**told, "warnings": warnings})
        return
    print("\n".join([*warnings, f"{records} records: {output}"]))
    if not release.is_private:
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
