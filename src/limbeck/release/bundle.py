"""What is published: a folder with the records, how they were made, and what is promised.

    release.json   method, settings, budget, every ledger event, schema, versions
    data.npz       the points and their label weights; images in units of pixels
    data.parquet   tables: the points in the schema's own units and category names
    generator.npz  generated records: the generator, to draw more of them
    README.md      a data card in words, the privacy statement first
    preview.png    the points as an image
    report.html    all of it as one page, if `limbeck report` made it

A bundle holds either points that were distilled for a kernel, or records of a generator. Nothing in
it was computed from a private row except through a noisy measurement.
"""

import abc
import dataclasses
import importlib.metadata
import json
import math
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limbeck.data import encode
from limbeck.data.parse import Section
from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.models.state import GeneratorState
from limbeck.privacy import accounting, ledger
from limbeck.privacy.budget import Adjacency, Budget
from limbeck.release import card, files, preview

if TYPE_CHECKING:
    import pandas as pd

    from limbeck.models.ridge import KernelRidge

FORMAT = 2
VERSIONED = ("limbeck", "dp-accounting", "jax", "numpy")
WEIGHTS = "weights/"
# The entry in data.npz, and in the metadata of data.parquet, of a bundle that is not for release.
STAMP = "not_for_release"

Arrays = dict[str, NDArray[Any]]


class Configured(Protocol):
    """A method: a dataclass of settings, with a name."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """The name of the method."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bundle(abc.ABC):
    """A bundle in memory; `Distilled` and `Generated` are the two kinds.

    Attributes
    ----------
    points : points, or generated records, in the units of the encoding, [0, 1] for records.
    y_soft : one weight per class for each point, adding up to one; one-hot for generated records.
    epsilon : the ε that was spent, by the accountant; infinite if there was no noise.
    seeded : whether noise came from a seed, which makes the bundle unfit for release.
    noisy_rows : the number of private records by noisy class counts, where they were measured.
    """

    title: ClassVar[str]
    noun: ClassVar[str]
    covered: ClassVar[str]

    method: str
    settings: dict[str, Any]
    schema: Schema
    points: NDArray[np.float32]
    y_soft: NDArray[np.float32]
    budget: Budget | None
    events: tuple[ledger.Entry, ...]
    epsilon: float
    seeded: bool
    noisy_rows: float | None = None

    @property
    def is_private(self) -> bool:
        """Whether a privacy guarantee holds: noise was added, and it is not predictable."""
        return self.budget is not None and not self.seeded

    @property
    @abc.abstractmethod
    def x(self) -> NDArray[np.float32] | NDArray[np.uint8]:
        """The points: images in units of pixels, or the encoded rows of a table."""

    @property
    def y(self) -> NDArray[Any]:
        """The class of each point: that of the largest weight."""
        return np.asarray(encode.decode_labels(self.schema, self.y_soft.argmax(axis=1)))

    @abc.abstractmethod
    def to_frame(self) -> "pd.DataFrame":
        """The points in the schema's own units and names, with the label."""

    @abc.abstractmethod
    def to_arrays(self) -> Arrays:
        """The arrays of data.npz."""

    @abc.abstractmethod
    def about(self) -> str:
        """What the points are good for, and the files, for the data card."""

    @abc.abstractmethod
    def _model(self) -> dict[str, Any]:
        """The part of release.json that says how the points are used, or what made them."""

    @abc.abstractmethod
    def _write_model(self, folder: Path) -> None:
        """Write the files that only this kind of bundle has."""

    def statement(self) -> str:
        """The privacy statement, in words."""
        return card.statement(self)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the bundle, whole or not at all; a bundle in its place stays until then."""
        folder = Path(folder)
        files.check_destination(folder, overwrite)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{folder} cannot be written ({error.strerror or error})") from None
        files.write_whole(folder, self._write)
        return folder

    def write_data(self, path: Path) -> None:
        """Write the records as .npz, .parquet or .csv; stamped if there is no guarantee."""
        if path.suffix == ".npz":
            np.savez_compressed(path, **self.to_arrays(), **self._stamp())  # type: ignore[arg-type]
        elif path.suffix == ".csv":
            self.to_frame().to_csv(path, index=False)
        else:
            self._write_parquet(path)

    def _stamp(self) -> Arrays:
        return {} if self.is_private else {STAMP: np.array(card.statement(self))}

    def _write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        stamp = {name: str(text) for name, text in self._stamp().items()}
        pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **stamp}), path)

    def _frame(self) -> "pd.DataFrame":
        """The points and their class, without weights."""
        import pandas as pd

        if self.schema.is_image:
            names = list(self.schema.coordinate_names)
            frame = pd.DataFrame(self.x.reshape(len(self.points), -1), columns=names)
        else:
            frame = encode.decode_table(self.schema, self.points)
        frame[self.schema.label] = self.y
        return frame

    def _write(self, folder: Path) -> None:
        folder.mkdir()
        (folder / files.RELEASE).write_text(json.dumps(self._release(), indent=2) + "\n")
        self.write_data(folder / "data.npz")
        if not self.schema.is_image:
            self.write_data(folder / "data.parquet")
        self._write_model(folder)
        (folder / "README.md").write_text(card.readme(self), encoding="utf-8")
        preview.draw(self, folder / "preview.png")

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
                "noisy_rows": self.noisy_rows,
            },
            "model": self._model(),
            "records": len(self.points),
            "schema": self.schema.to_dict(),
            "versions": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in VERSIONED},
            },
        }


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Distilled(Bundle):
    """Points to be used with their kernel, by kernel ridge regression with `regularisation`."""

    title = "Distilled data"
    noun = "points"
    covered = "is covered"

    kernel: dict[str, Any]
    regularisation: float

    @classmethod
    def of(
        cls,
        *,
        method: Configured,
        schema: Schema,
        x: NDArray[np.floating],
        y: NDArray[np.floating],
        kernel: dict[str, Any],
        regularisation: float,
        budget: Budget | None,
        ledger: ledger.Ledger,
        seeded: bool,
        noisy_rows: float | None = None,
    ) -> Self:
        """The result of a distillation; the ε that was spent is computed from the ledger."""
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
            noisy_rows=noisy_rows,
            **_made_by(method, budget, ledger),
        )

    @property
    def x(self) -> NDArray[np.float32]:
        """The points: images in units of pixels, in any range, or the encoded rows of a table."""
        if not self.schema.is_image:
            return self.points
        return encode.decode_images(self.schema, self.points)

    def to_frame(self) -> "pd.DataFrame":
        """The points in the schema's own units and names, the label, and a weight per class."""
        frame = self._frame()
        for position, value in enumerate(self.schema.classes):
            frame[f"{self.schema.label}={value}"] = self.y_soft[:, position]
        return frame

    def to_arrays(self) -> Arrays:
        """The points `x`, their classes `y` and their label weights `y_soft`."""
        return {"x": self.x, "y": _as_text(self.y), "y_soft": self.y_soft}

    def classifier(self) -> "Classifier":
        """Kernel ridge regression on the points."""
        from limbeck.features import inputs, kernels
        from limbeck.models.ridge import KernelRidge

        ridge = KernelRidge(
            kernels.kernel(**self.kernel),
            inputs.inputs_of(self.schema),
            self.points,
            self.y_soft - 1 / len(self.schema.classes),
            self.regularisation,
        )
        return Classifier(self.schema, ridge)

    def about(self) -> str:
        """What the points are good for, and the files."""
        return card.about_distilled(self)

    def _model(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "regularisation": self.regularisation}

    def _write_model(self, folder: Path) -> None:
        """The kernel is in release.json."""


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Generated(Bundle):
    """Records of a generator, each of one class, and the generator."""

    title = "Generated data"
    noun = "records"
    covered = "and any further records drawn from its generator are covered"

    generator: GeneratorState

    @classmethod
    def of(
        cls,
        *,
        method: Configured,
        schema: Schema,
        x: NDArray[np.floating],
        labels: NDArray[np.integer],
        generator: GeneratorState,
        budget: Budget | None,
        ledger: ledger.Ledger,
        seeded: bool,
        noisy_rows: float | None = None,
    ) -> Self:
        """Records of a generator; the ε that was spent is computed from the ledger.

        `x` are coordinates in [0, 1], of which the nearest valid records are kept; `labels` are the
        positions of their classes in the schema.
        """
        if not all(np.isfinite(numbers).all() for numbers in (x, *generator.arrays.values())):
            raise UserError("the generator went out of bounds; take a smaller --learning-rate")
        return cls(
            schema=schema,
            generator=generator,
            seeded=seeded,
            noisy_rows=noisy_rows,
            **_records(schema, x, labels),
            **_made_by(method, budget, ledger),
        )

    @property
    def x(self) -> NDArray[np.float32] | NDArray[np.uint8]:
        """The records: images of whole numbers 0..255, or the encoded rows of a table."""
        if not self.schema.is_image:
            return self.points
        return np.rint(encode.decode_images(self.schema, self.points)).astype(np.uint8)

    def to_frame(self) -> "pd.DataFrame":
        """The records in the schema's own units and names, with the label."""
        return self._frame()

    def to_arrays(self) -> Arrays:
        """The records `x` and their classes `y`."""
        return {"x": self.x, "y": _as_text(self.y)}

    def sample(self, n: int, seed: int | None = None) -> Self:
        """The same bundle with `n` new records of its generator, which cost no privacy.

        With a seed they are the same each time.
        """
        if n < 1:
            raise UserError(f"the number of records must be at least 1, not {n}")
        from limbeck.models.sampling import draw
        from limbeck.privacy.noise import entropy

        x, labels = draw(self.schema, self.generator, n, entropy(seed))
        return dataclasses.replace(self, **_records(self.schema, x, labels))

    def about(self) -> str:
        """What the records are good for, how to draw more, and the files."""
        return card.about_generated(self)

    def _model(self) -> dict[str, Any]:
        return {"generator": self.generator.config}

    def _write_model(self, folder: Path) -> None:
        """The generator as numbers and text: nothing in the file runs when it is read."""
        weights = {f"{WEIGHTS}{name}": array for name, array in self.generator.arrays.items()}
        config = np.array(json.dumps(self.generator.config))
        np.savez_compressed(folder / "generator.npz", config=config, **weights)  # type: ignore[arg-type]


class Classifier:
    """Predicts the class of new rows: a data frame, or images of whole numbers 0..255."""

    def __init__(self, schema: Schema, ridge: "KernelRidge") -> None:
        self._schema, self.ridge = schema, ridge

    def scores(self, rows: "pd.DataFrame | ArrayLike") -> NDArray[np.float32]:
        """One regression value per class for each row; the largest names the class."""
        return self.ridge.scores(encode.encode_rows(self._schema, rows))

    def predict(self, rows: "pd.DataFrame | ArrayLike") -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(encode.decode_labels(self._schema, self.scores(rows).argmax(axis=1)))


def _made_by(method: Configured, budget: Budget | None, spent: ledger.Ledger) -> dict[str, Any]:
    """The method and what it spent; no bundle exists beyond the budget."""
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
    one_hot = np.eye(len(schema.classes), dtype=np.float32)[labels]
    return {"points": encode.nearest_records(schema, x), "y_soft": one_hot}


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Text arrays instead of Python objects, which a careful reader refuses to load."""
    return values.astype(str) if values.dtype == object else values


def load(folder: str | Path) -> Distilled | Generated:
    """Read a bundle, and check that its events add up to at most the stated ε."""
    folder = Path(folder)
    try:
        release = files.read_release(folder)
        bundle = _read(folder, release) if release.integer("format") == FORMAT else None
    except files.NotABundleError:
        raise
    except UserError as error:
        raise UserError(f"{folder} is a damaged bundle ({error}); get it again") from None
    if bundle is None:
        raise UserError(f"{folder} was written by another version of Limbeck; make it again")
    if bundle.budget is not None:
        spent = accounting.epsilon(bundle.events, bundle.budget.delta, bundle.budget.adjacency)
        if spent > bundle.epsilon * (1 + 1e-9):
            raise UserError(
                f"{folder} states epsilon={bundle.epsilon:g}, but its events add up to "
                f"epsilon={spent:g}; do not trust it"
            )
    return bundle


def _read(folder: Path, release: Section) -> Distilled | Generated:
    """The inverse of `Bundle._write`; every value of a stranger's file is checked."""
    schema, model = Schema.from_dict(dict(release.table("schema"))), _section(release, "model")
    data, made = files.read_arrays(folder, "data.npz"), _read_made_by(release)
    points = _numbers(data, "x")
    if points.size != len(points) * schema.width:
        raise UserError("data.npz: x does not fit the schema")
    points = points.reshape(len(points), schema.width)
    common = {"points": points / np.float32(255) if schema.is_image else points, **made}
    if "generator" in model.content:
        generator = _read_generator(folder, dict(model.table("generator")))
        weights = _read_labels(schema, data, len(points))
        return Generated(schema=schema, generator=generator, y_soft=weights, **common)
    weights = _numbers(data, "y_soft")
    if weights.shape != (len(points), len(schema.classes)):
        raise UserError("data.npz: x and y_soft do not belong together")
    kernel, ridge = dict(model.table("kernel")), model.number("regularisation")
    return Distilled(schema=schema, kernel=kernel, regularisation=ridge, y_soft=weights, **common)


def _section(above: Section, key: str) -> Section:
    return Section(f"{above.name}: {key}", above.table(key))


def _numbers(data: dict[str, NDArray[np.generic]], name: str) -> NDArray[np.float32]:
    array = data.get(name)
    if array is None or array.dtype.kind not in "uif" or not array.ndim:
        raise UserError(f"data.npz: {name} is missing, or does not hold numbers")
    return array.astype(np.float32)


def _read_made_by(release: Section) -> dict[str, Any]:
    method, privacy = _section(release, "method"), _section(release, "privacy")
    stated = privacy.content.get("budget")
    budget = None if stated is None else _read_budget(_section(privacy, "budget"))
    events, rows = privacy.content.get("events"), privacy.content.get("noisy_rows")
    if not isinstance(events, list):
        raise UserError(f"{privacy.name}: events must be a list")
    return {
        "method": method.string("name"),
        "settings": dict(method.table("settings")),
        "budget": budget,
        "events": tuple(_read_event(Section(f"{privacy.name}: events", each)) for each in events),
        "epsilon": math.inf if budget is None else float(privacy.number("epsilon")),
        "seeded": privacy.boolean("seeded", False),
        "noisy_rows": None if rows is None else float(privacy.number("noisy_rows")),
    }


def _read_budget(stated: Section) -> Budget:
    adjacency = stated.string("adjacency")
    if adjacency not in {kind.value for kind in Adjacency}:
        raise UserError(f"{stated.name}: there is no adjacency {adjacency!r}")
    return Budget(
        epsilon=stated.number("epsilon"),
        delta=stated.number("delta"),
        adjacency=Adjacency(adjacency),
    )


def _read_event(stated: Section) -> ledger.Entry:
    noise = stated.content.get("noise_multiplier")
    mechanism = stated.string("mechanism")
    share, draws = stated.number("sampling_probability"), stated.integer("draws")
    if mechanism not in ("gaussian", "laplace") or draws < 1 or not 0 < share <= 1:
        raise UserError(f"{stated.name}: no such event")
    if noise is not None and not 0 < stated.number("noise_multiplier") < math.inf:
        raise UserError(f"{stated.name}: the noise multiplier must be positive")
    return ledger.Entry(
        purpose=stated.string("purpose"),
        draws=draws,
        noise_multiplier=noise,
        sampling_probability=share,
        mechanism="laplace" if mechanism == "laplace" else "gaussian",
    )


def _read_generator(folder: Path, stated: dict[str, Any]) -> GeneratorState:
    """The inverse of `Generated._write_model`."""
    arrays = files.read_arrays(folder, "generator.npz")
    try:
        config = json.loads(str(arrays.pop("config", "")))
    except ValueError:
        raise UserError("generator.npz: config is not JSON") from None
    if config != stated:
        raise UserError("generator.npz: the generator is not that of the release")
    weights = {name.removeprefix(WEIGHTS): array for name, array in arrays.items()}
    if any(array.dtype.kind not in "biuf" for array in weights.values()):
        raise UserError("generator.npz: a generator consists of numbers")
    return GeneratorState(config, weights)


def _read_labels(
    schema: Schema, data: dict[str, NDArray[np.generic]], records: int
) -> NDArray[np.float32]:
    """The one-hot weights of generated records, from their classes."""
    classes = _as_text(encode.decode_labels(schema, np.arange(len(schema.classes)))).tolist()
    labels = data["y"].tolist() if "y" in data else []
    if not isinstance(labels, list) or len(labels) != records or not set(labels) <= set(classes):
        raise UserError("data.npz: y must be a class of the schema for each record")
    return np.eye(len(classes), dtype=np.float32)[[classes.index(label) for label in labels]]
