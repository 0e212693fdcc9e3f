"""What is published: a folder with the records, how they were made, and what is promised.

    release.json   method, settings, budget, every ledger event, schema, versions
    data.npz       the points and their label weights; images in units of pixels
    data.parquet   tables: the points in the schema's own units and category names
    README.md      a data card in words, the privacy statement first
    preview.png    a picture of the points
    report.html    all of it as one page, where `limbeck report` was asked for it

Nothing in it was computed from a private row except through a noisy measurement.
"""

import dataclasses
import importlib.metadata
import json
import math
import os
import platform
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck import card
from limbeck.data import encode
from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.privacy import accounting, ledger
from limbeck.privacy.budget import Adjacency, Budget

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bundle:
    """A release, in memory.

    Attributes
    ----------
    points : support points in the units of the encoding, [0, 1] for records.
    y_soft : one weight a class for each point; they add up to one.
    epsilon : what was spent, by the accountant; infinite where nothing was noised.
    seeded : noise came from a seed, so the bundle is not for release.
    """

    method: str
    settings: dict[str, Any]
    schema: Schema
    points: NDArray[np.float32]
    y_soft: NDArray[np.float32]
    kernel: dict[str, Any]
    regularisation: float
    budget: Budget | None
    events: tuple[ledger.Entry, ...]
    epsilon: float
    seeded: bool

    @classmethod
    def distilled(
        cls,
        *,
        method: Any,
        schema: Schema,
        x: NDArray[np.floating],
        y: NDArray[np.floating],
        kernel: dict[str, Any],
        regularisation: float,
        budget: Budget | None,
        ledger: ledger.Ledger,
        seeded: bool,
    ) -> "Bundle":
        """The result of a distillation; what was spent is computed from the ledger."""
        if not np.isfinite(x).all():
            raise UserError(
                "the points went out of bounds; take a smaller --learning-rate, or a larger "
                "--regularisation"
            )
        spent = math.inf
        if budget:
            spent = accounting.epsilon(ledger.entries, budget.delta, budget.adjacency)
            if spent > budget.epsilon:
                raise RuntimeError("the ledger holds more than the budget allows; not released")
        return cls(
            method=method.name,
            settings=dataclasses.asdict(method),
            schema=schema,
            points=np.asarray(x, np.float32),
            y_soft=np.asarray(y, np.float32),
            kernel=kernel,
            regularisation=regularisation,
            budget=budget,
            events=ledger.entries,
            epsilon=spent,
            seeded=seeded,
        )

    @property
    def x(self) -> NDArray[np.float32]:
        """The points: images in units of pixels, or the encoded rows of a table."""
        if self.schema.is_image:
            return np.asarray(encode.decode_images(self.schema, self.points))
        return self.points

    @property
    def y(self) -> NDArray[Any]:
        """The class of each point: that of the largest weight."""
        return np.asarray(encode.decode_labels(self.schema, self.y_soft.argmax(axis=1)))

    def to_frame(self) -> "pd.DataFrame":
        """The points in the schema's own units and names, the label, and a weight a class."""
        import pandas as pd

        if self.schema.is_image:
            names = self.schema.coordinate_names
            frame = pd.DataFrame(self.x.reshape(len(self.points), -1), columns=list(names))
        else:
            frame = encode.decode_table(self.schema, self.points)
        frame[self.schema.label] = self.y
        for position, value in enumerate(self.schema.classes):
            frame[f"{self.schema.label}={value}"] = self.y_soft[:, position]
        return frame

    def classifier(self) -> "Classifier":
        """Kernel ridge regression on the points."""
        return Classifier(self)

    def statement(self) -> str:
        """The privacy statement, in words."""
        return card.statement(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the bundle; whole or not at all, and a bundle in its place stays until then."""
        folder = Path(folder)
        check_destination(folder, overwrite)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".limbeck-", dir=folder.parent) as scratch:
                written = Path(scratch, "new")
                written.mkdir()
                self._write(written)
                _put(written, folder, replaced=Path(scratch, "old"))
        except OSError as error:
            raise UserError(f"{folder} cannot be written ({error.strerror or error})") from None
        return folder

    def _write(self, folder: Path) -> None:
        (folder / "release.json").write_text(json.dumps(self._release(), indent=2) + "\n")
        # Text as such, not as Python objects, which a careful reader refuses to load.
        y = self.y if self.y.dtype != object else self.y.astype(str)
        np.savez_compressed(folder / "data.npz", x=self.x, y=y, y_soft=self.y_soft)
        if not self.schema.is_image:
            self.to_frame().to_parquet(folder / "data.parquet", index=False)
        (folder / "README.md").write_text(card.readme(self), encoding="utf-8")
        card.preview(self, folder / "preview.png")

    def _release(self) -> dict[str, Any]:
        budget = self.budget and {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "adjacency": self.budget.adjacency.value,
        }
        return {
            "format": FORMAT,
            "method": {"name": self.method, "settings": self.settings},
            "privacy": {
                "statement": self.statement(),
                "budget": budget,
                "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
                "accountant": accounting.ACCOUNTANT,
                "events": ledger.to_json(self.events),
                "seeded": self.seeded,
            },
            "model": {"kernel": self.kernel, "regularisation": self.regularisation},
            "records": len(self.points),
            "schema": self.schema.to_dict(),
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in VERSIONED},
            },
        }


VERSIONED = ("limbeck", "dp-accounting", "jax", "numpy")


class Classifier:
    """Predicts the class of new rows: a data frame, or images of whole numbers 0..255."""

    def __init__(self, bundle: Bundle) -> None:
        from limbeck.distill.krr import KernelRidge
        from limbeck.features import inputs, kernels

        self._schema = bundle.schema
        self.ridge = KernelRidge(
            kernels.kernel(**bundle.kernel),
            inputs.inputs_of(bundle.schema),
            bundle.points,
            bundle.y_soft - 1 / len(bundle.schema.classes),
            bundle.regularisation,
        )

    def scores(self, rows: "pd.DataFrame | ArrayLike") -> NDArray[np.float32]:
        """One regression value a class and row; the largest names the class."""
        return self.ridge.scores(encode.encode_rows(self._schema, rows))

    def predict(self, rows: "pd.DataFrame | ArrayLike") -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(encode.decode_labels(self._schema, self.scores(rows).argmax(axis=1)))


def _put(written: Path, folder: Path, replaced: Path) -> None:
    """Rename into place; what was there goes to `replaced`, or comes back if that fails."""
    try:
        if folder.exists():
            folder.rename(replaced)
        written.rename(folder)
    except BaseException:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise


def check_destination(folder: Path, overwrite: bool) -> None:
    """Refuse a destination that exists or cannot be; better before the work than after it."""
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
    if not (folder / "release.json").is_file():
        raise UserError(f"{folder} is not a bundle and is not overwritten; choose another folder")


def load(folder: str | Path) -> Bundle:
    """Read a bundle."""
    folder = Path(folder)
    try:
        release = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            x, y_soft = data["x"], data["y_soft"]
        if release["format"] != FORMAT:
            raise UserError(f"{folder} was written by another version of Limbeck; make it again")
        return _read(release, x, y_soft)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(
            f"{folder} is not a bundle: it has no {Path(error.filename).name}; "
            "`limbeck distill` makes one"
        ) from None
    except _DAMAGE as error:
        raise UserError(
            f"{folder} is a damaged bundle ({type(error).__name__}); get it again"
        ) from None


# What reading the files and picking them apart can raise, if they are not what was written.
_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


def _read(release: dict[str, Any], x: NDArray[np.float32], y_soft: NDArray[np.float32]) -> Bundle:
    """The inverse of `Bundle._write`."""
    schema = Schema.from_dict(release["schema"])
    points = x.reshape(len(x), schema.width)
    if y_soft.shape != (len(points), len(schema.classes)):
        raise ValueError("the points and their weights do not belong together")
    privacy, budget = release["privacy"], release["privacy"]["budget"]
    return Bundle(
        method=release["method"]["name"],
        settings=release["method"]["settings"],
        schema=schema,
        points=points / np.float32(255) if schema.is_image else points,
        y_soft=y_soft,
        kernel=release["model"]["kernel"],
        regularisation=release["model"]["regularisation"],
        budget=budget
        and Budget(
            epsilon=budget["epsilon"],
            delta=budget["delta"],
            adjacency=Adjacency(budget["adjacency"]),
        ),
        events=ledger.from_json(privacy["events"]),
        epsilon=math.inf if privacy["epsilon"] is None else privacy["epsilon"],
        seeded=privacy["seeded"],
    )
