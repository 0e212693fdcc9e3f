"""What is published: a folder with the records, how they were made, and what is promised.

    release.json   method, settings, budget, every ledger event, schema, versions
    data.npz       the points and their label weights; images in units of pixels
    data.parquet   tables: the points in the schema's own units and category names
    generator.npz  generated records: the generator, to draw more of them
    README.md      a data card in words, the privacy statement first
    preview.png    a picture of the points
    report.html    all of it as one page, where `limbeck report` was asked for it

Points are distilled and used with their kernel, or are records that a generator made. Nothing in
it was computed from a private row except through a noisy measurement.
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
from limbeck.models.state import GeneratorState
from limbeck.privacy import accounting, ledger
from limbeck.privacy.budget import Adjacency, Budget

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bundle:
    """A release, in memory.

    Attributes
    ----------
    points : support points, or generated records, in the units of the encoding, [0, 1] for records.
    y_soft : one weight a class for each point, adding up to one; generated records have one class.
    kernel, regularisation : how distilled points are used; None for generated records.
    generator : what made the records; None for distilled points.
    epsilon : what was spent, by the accountant; infinite where nothing was noised.
    seeded : noise came from a seed, so the bundle is not for release.
    """

    method: str
    settings: dict[str, Any]
    schema: Schema
    points: NDArray[np.float32]
    y_soft: NDArray[np.float32]
    kernel: dict[str, Any] | None
    regularisation: float | None
    budget: Budget | None
    events: tuple[ledger.Entry, ...]
    epsilon: float
    seeded: bool
    generator: GeneratorState | None = None

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
        return cls(
            schema=schema,
            points=np.asarray(x, np.float32),
            y_soft=np.asarray(y, np.float32),
            kernel=kernel,
            regularisation=regularisation,
            seeded=seeded,
            **_made_by(method, budget, ledger),
        )

    @classmethod
    def generated(
        cls,
        *,
        method: Any,
        schema: Schema,
        x: NDArray[np.floating],
        labels: NDArray[np.integer],
        generator: GeneratorState,
        budget: Budget | None,
        ledger: ledger.Ledger,
        seeded: bool,
    ) -> "Bundle":
        """Records of a generator; what was spent is computed from the ledger.

        `x` are coordinates in [0, 1], of which the nearest records are kept; `labels` are the
        positions of their classes in the schema.
        """
        if not all(np.isfinite(numbers).all() for numbers in (x, *generator.arrays.values())):
            raise UserError("the generator went out of bounds; take a smaller --learning-rate")
        return cls(
            schema=schema,
            kernel=None,
            regularisation=None,
            generator=generator,
            seeded=seeded,
            **_records(schema, x, labels),
            **_made_by(method, budget, ledger),
        )

    @property
    def is_generated(self) -> bool:
        """Whether the points are records of a generator, rather than distilled for a kernel."""
        return self.generator is not None

    @property
    def x(self) -> NDArray[np.float32] | NDArray[np.uint8]:
        """The points: images in units of pixels, or the encoded rows of a table.

        Pixels of generated images are whole numbers 0..255, those of distilled ones are any.
        """
        if not self.schema.is_image:
            return self.points
        pixels = encode.decode_images(self.schema, self.points)
        return np.rint(pixels).astype(np.uint8) if self.is_generated else pixels

    @property
    def y(self) -> NDArray[Any]:
        """The class of each point: that of the largest weight."""
        return np.asarray(encode.decode_labels(self.schema, self.y_soft.argmax(axis=1)))

    def to_frame(self) -> "pd.DataFrame":
        """The points in the schema's own units and names, the label, and a weight a class.

        Generated records have no weights.
        """
        import pandas as pd

        if self.schema.is_image:
            names = self.schema.coordinate_names
            frame = pd.DataFrame(self.x.reshape(len(self.points), -1), columns=list(names))
        else:
            frame = encode.decode_table(self.schema, self.points)
        frame[self.schema.label] = self.y
        if not self.is_generated:
            for position, value in enumerate(self.schema.classes):
                frame[f"{self.schema.label}={value}"] = self.y_soft[:, position]
        return frame

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`x`, `y` and, of distilled points, `y_soft`, as they stand in data.npz."""
        arrays = {"x": self.x, "y": _as_text(self.y)}
        return arrays if self.is_generated else {**arrays, "y_soft": self.y_soft}

    def classifier(self) -> "Classifier":
        """Kernel ridge regression on the points."""
        return Classifier(self)

    def sample(self, n: int, seed: int | None = None) -> "Bundle":
        """The same release with `n` new records of its generator, which cost no privacy.

        With a seed they are the same each time.
        """
        if self.generator is None:
            raise UserError("a distilled set is complete: it has no generator")
        if n < 1:
            raise UserError(f"the number of records must be at least 1, not {n}")
        from limbeck.models.sampling import draw
        from limbeck.privacy import noise

        x, labels = draw(self.schema, self.generator, n, noise.entropy(seed))
        return dataclasses.replace(self, **_records(self.schema, x, labels))

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
        _write_arrays(folder / "data.npz", self.to_arrays())
        if self.generator is not None:
            _write_generator(self.generator, folder / "generator.npz")
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
            "model": self._model(),
            "records": len(self.points),
            "schema": self.schema.to_dict(),
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in VERSIONED},
            },
        }

    def _model(self) -> dict[str, Any]:
        if self.generator is not None:
            return {"generator": self.generator.config}
        return {"kernel": self.kernel, "regularisation": self.regularisation}


VERSIONED = ("limbeck", "dp-accounting", "jax", "numpy")


class Classifier:
    """Predicts the class of new rows: a data frame, or images of whole numbers 0..255."""

    def __init__(self, bundle: Bundle) -> None:
        if bundle.kernel is None or bundle.regularisation is None:
            raise UserError(
                "generated records have no classifier of their own: train any model on the "
                "bundle's x and y"
            )
        from limbeck.features import inputs, kernels
        from limbeck.models.ridge import KernelRidge

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


def _made_by(method: Any, budget: Budget | None, spent: ledger.Ledger) -> dict[str, Any]:
    """What made the points, and what that spent; no bundle exists beyond the budget."""
    epsilon = math.inf
    if budget:
        epsilon = accounting.epsilon(spent.entries, budget.delta, budget.adjacency)
        if epsilon > budget.epsilon:
            raise RuntimeError("the ledger holds more than the budget allows; not released")
    return {
        "method": method.name,
        "settings": dataclasses.asdict(method),
        "budget": budget,
        "events": spent.entries,
        "epsilon": epsilon,
    }


def _records(
    schema: Schema, x: NDArray[np.floating], labels: NDArray[np.integer]
) -> dict[str, Any]:
    """Generated coordinates as records that the schema admits, each of one class."""
    if labels.shape != (len(x),) or not np.isin(labels, np.arange(len(schema.classes))).all():
        raise ValueError("each record needs the position of one class")
    return {"points": encode.nearest_records(schema, x), "y_soft": _one_hot(schema, labels)}


def _one_hot(schema: Schema, labels: NDArray[np.integer]) -> NDArray[np.float32]:
    return np.eye(len(schema.classes), dtype=np.float32)[labels]


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Text as such, not as Python objects, which a careful reader refuses to load."""
    return values.astype(str) if values.dtype == object else values


def _write_generator(generator: GeneratorState, path: Path) -> None:
    """Numbers and text alone: nothing in the file runs when it is read."""
    weights = {f"{WEIGHTS}{name}": array for name, array in generator.arrays.items()}
    _write_arrays(path, {"config": np.array(json.dumps(generator.config)), **weights})


WEIGHTS = "weights/"


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    np.savez_compressed(path, **arrays)


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


def in_a_bundle(path: Path) -> bool:
    """Whether the path lies in a folder that is to be published, however deep, links followed."""
    return any((above / "release.json").exists() for above in path.resolve().parents)


def load(folder: str | Path) -> Bundle:
    """Read a bundle."""
    folder = Path(folder)
    try:
        release = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        data = _read_arrays(folder / "data.npz")
        if release["format"] != FORMAT:
            raise UserError(f"{folder} was written by another version of Limbeck; make it again")
        generator = None
        if "generator" in release["model"]:
            generator = _read_generator(release, _read_arrays(folder / "generator.npz"))
        return _read(release, data, generator)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(
            f"{folder} is not a bundle: it has no {Path(error.filename).name}; "
            "`limbeck distill` and `limbeck generate` make one"
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


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _read_generator(release: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> GeneratorState:
    """The inverse of `_write_generator`."""
    config = json.loads(arrays["config"].item())
    if config != release["model"]["generator"]:
        raise ValueError("the generator is not that of the release")
    weights = {
        name.removeprefix(WEIGHTS): array
        for name, array in arrays.items()
        if name.startswith(WEIGHTS)
    }
    return GeneratorState(config, weights)


def _read_labels(schema: Schema, y: NDArray[Any]) -> NDArray[np.float32]:
    """The weights of generated records, from their classes."""
    classes = _as_text(encode.decode_labels(schema, np.arange(len(schema.classes))))
    positions = {value: position for position, value in enumerate(classes.tolist())}
    labels = np.array([positions[value] for value in y.tolist()])
    return _one_hot(schema, labels)


def _read(
    release: dict[str, Any], data: dict[str, NDArray[Any]], generator: GeneratorState | None
) -> Bundle:
    """The inverse of `Bundle._write`."""
    schema = Schema.from_dict(release["schema"])
    points: NDArray[np.float32] = data["x"].reshape(len(data["x"]), schema.width)
    y_soft = data["y_soft"] if generator is None else _read_labels(schema, data["y"])
    if y_soft.shape != (len(points), len(schema.classes)):
        raise ValueError("the points and their weights do not belong together")
    privacy, budget = release["privacy"], release["privacy"]["budget"]
    return Bundle(
        method=release["method"]["name"],
        settings=release["method"]["settings"],
        schema=schema,
        points=points / np.float32(255) if schema.is_image else points,
        y_soft=y_soft,
        kernel=None if generator else release["model"]["kernel"],
        regularisation=None if generator else release["model"]["regularisation"],
        generator=generator,
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
