"""DP-NTK, DP-MERF and DP-HP: a generator that matches one noisy mean embedding a class.

One mechanism, three feature maps. Algorithm 1 of DP-NTK: sum the features of the records of each
class, once, with noise; then train a generator until the mean features of what it makes are these,
for as long as one likes, at no further cost.

References
----------
Yang, Adamczewski, Sutherland, Li & Park 2023 (DP-NTK); Harder, Adamczewski & Park 2021 (DP-MERF);
Vinaroz, Charusaie, Harder, Adamczewski & Park 2022 (DP-HP).
"""

import abc
import dataclasses
import math
from typing import Literal

import jax
import numpy as np

from limbeck.data.schema import Described, Schema
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap
from limbeck.features.bins import number_coordinates
from limbeck.features.conv_ntk import ConvNTK
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier, length_scale
from limbeck.features.hermite import Hermite
from limbeck.features.mixed import Mixed, columns_of
from limbeck.features.places import Places, edges_of, places_of
from limbeck.generate import labels
from limbeck.generate.training import Descent, Target, train
from limbeck.measure import moments
from limbeck.measure.moments import COUNTS, EMBEDDING, HISTOGRAMS
from limbeck.measure.readout import GRADIENT
from limbeck.models import class_filter, sampling
from limbeck.models import generators as nets
from limbeck.models import labeller as labellers
from limbeck.models.generators import COLOUR, ROWS, GeneratorConfig
from limbeck.models.state import GeneratorState
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import Entropy, entropy
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle, Generated

# Channels of the maps of grey pictures.
GREY = (4,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MomentMatching(abc.ABC):
    """What the three have in common.

    Attributes
    ----------
    records : how many records the bundle holds; more can be drawn from its generator.
    steps, batch, learning_rate : of the generator's training: Adam, at a rate that falls to zero
        along a cosine, on so many records at a time, equally many of each class. If they are not
        given, 2000 of 1000 for rows of a table, and 8000 of 250 for pictures, at least ten a class;
        fewer where the noise is longer than a mean can be, for they would learn the noise.
    code : the number of random numbers that a record is made of; if it is not given, 10 for rows of
        a table and 20 for pictures.
    judged : whether pictures that look like another class are drawn again (`class_filter.py`).
    label_with : "class" for the class that a record was made for; "readout" for what a private
        readout of real pictures says of it (`labeller.py`), which takes the place of the judge.
    count_share : of the noise budget, for the number of records in each class.
    histogram_share : of the noise budget, for where the numbers of a table are.
    label_share : of the noise budget, for that readout; the moments have one.
    """

    records: int = 10_000
    steps: int | None = None
    batch: int | None = None
    learning_rate: float = 0.01
    code: int | None = None
    judged: bool = True
    label_with: Literal["class", "readout"] = "class"
    count_share: float = 0.01
    histogram_share: float = 0.05
    label_share: float = 2.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            option = "--" + field.name.replace("_", "-")
            if value is None or isinstance(value, str | bool):
                continue
            if isinstance(value, int | float):
                if not 0 < value < math.inf:
                    raise UserError(f"{option} must be a positive number, not {value:g}")
            else:
                object.__setattr__(self, field.name, tuple(value))  # JSON has lists
                if not value or min(value) < 1:
                    raise UserError(f"{option} must be positive numbers, as in 800,1000")
        if self.label_with not in ("class", "readout"):
            raise UserError(f"--label-with is class or readout, not '{self.label_with}'")

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """As in `METHODS`."""

    @abc.abstractmethod
    def features(self, dimension: int) -> FeatureMap:
        """The feature map for so many numbers in [0, 1]."""

    def fit(
        self,
        private: Described,
        budget: Budget,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> Bundle:
        """The generated records, their generator and the ledger."""
        schema, source = private.schema, entropy(seed)
        if self.label_with == "readout" and not schema.is_image:
            raise UserError("--label-with readout is for pictures; leave it out for a table")
        phi = self.map_for(schema)
        progress("calibrate", 0, 0)
        plan = [
            Measurement(purpose=EMBEDDING),
            Measurement(purpose=COUNTS, share=self.count_share),
        ]
        if not schema.is_image and number_coordinates(schema):
            plan.append(Measurement(purpose=HISTOGRAMS, share=self.histogram_share))
        if self.label_with == "readout":
            plan.append(labels.planned(self.label_share))
        ledger = Ledger(calibrate(plan, budget))
        noise = {entry.purpose: float(entry.noise_multiplier or 0) for entry in ledger.plan}

        try:
            # Behind the wall: where a table's numbers are, one noisy sum of features a class, and
            # a readout if there is to be one.
            places = Places()
            if HISTOGRAMS in noise:
                places = _places(private, noise[HISTOGRAMS], ledger, source, progress)
            measured = moments.measure(
                private, phi, places, ledger=ledger, entropy=source, progress=progress
            )
            # Whole numbers: the last digits of a noisy number are nobody's business.
            counts = np.maximum(np.rint(measured.counts), noise[COUNTS])
            labeller = None
            if GRADIENT in noise:
                labeller = labels.measure(
                    private,
                    counts,
                    noise[GRADIENT],
                    ledger=ledger,
                    entropy=source,
                    progress=progress,
                )

            # Post-processing: a generator with these moments, and records from it.
            generator = self._generator(
                schema, phi, places, measured.sums, counts, noise[EMBEDDING], source, progress
            )
            if labeller:
                generator = labellers.added(generator, labeller)
            elif self.judged and schema.is_image:
                generator = _judged(schema, generator, source)
            x, found = sampling.draw(schema, generator, self.records, source)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
        return Generated.of(
            method=self,
            schema=schema,
            x=x,
            labels=found,
            generator=generator,
            budget=budget,
            ledger=ledger,
            seeded=source.seeded,
        )

    def map_for(self, schema: Schema) -> FeatureMap:
        """For pictures all pixels; for tables the numbers, and the columns and their pairs."""
        if schema.is_image:
            return self.features(schema.width)
        numbers = number_coordinates(schema)
        inner = self.features(len(numbers)) if numbers else None
        return Mixed(columns=columns_of(schema), inner=inner)

    def _generator(
        self,
        schema: Schema,
        phi: FeatureMap,
        places: Places,
        sums: moments.Floats,
        counts: moments.Floats,
        noise: float,
        source: Entropy,
        progress: Progress,
    ) -> GeneratorState:
        lengths = noise * math.sqrt(sums.shape[1]) / counts
        target = target_of(sums, counts, lengths)
        shape = self._shape(schema)
        descent = self.descent_for(schema, float(np.median(lengths)))
        key = jax.random.key(int.from_bytes(source.bytes(4), "little"))
        net, frozen = train(schema, phi, target, shape, descent, key, progress)
        config = {
            **shape._asdict(),
            "shares": (counts / counts.sum()).tolist(),
            "places": places.to_json(),
        }
        return GeneratorState(config, nets.to_arrays(net, frozen))

    def descent_for(self, schema: Schema, noise: float) -> Descent:
        """As it was asked for, or many small steps for pictures and fewer large ones for rows.

        `noise` is the length of a mean's noise.
        """
        classes = len(schema.classes)
        steps, batch = 2000, 1000
        if schema.is_image:
            steps, batch = round(8000 / max(1, noise)), max(250, 10 * classes)
        per_class = max(1, round((self.batch or batch) / classes))
        return Descent(self.steps or max(steps, 1), per_class, self.learning_rate)

    def _shape(self, schema: Schema) -> GeneratorConfig:
        if not schema.is_image:
            return GeneratorConfig(self.code or 10, ROWS)
        return GeneratorConfig(self.code or 20, COLOUR if schema.image_shape[2] > 1 else GREY)


def _places(
    private: Described, noise: float, ledger: Ledger, source: Entropy, progress: Progress
) -> Places:
    """From one noisy histogram of each column of numbers."""
    numbers, edges = number_coordinates(private.schema), edges_of(private.schema)
    counts = moments.histograms(
        private, numbers, edges, ledger=ledger, entropy=source, progress=progress
    )
    found = [np.rint(part[: len(its) - 1]) for part, its in zip(counts, edges, strict=True)]
    deviation, rows = noise * math.sqrt(len(numbers)), float(np.median([p.sum() for p in found]))
    at = [places_of(histogram, deviation, rows) for histogram in found]
    return Places(numbers, edges, at)


def _judged(schema: Schema, generator: GeneratorState, source: Entropy) -> GeneratorState:
    """The same with a judge, which learns from as many of its pictures of each class."""
    classes = len(schema.classes)
    equal = GeneratorState(
        {**generator.config, "shares": [1 / classes] * classes}, generator.arrays
    )
    x, labels = sampling.draw(schema, equal, max(class_filter.IMAGES, classes), source)
    if not np.isfinite(x).all():  # which the bundle refuses
        return generator
    its = class_filter.to_arrays(class_filter.learn(x, labels, classes))
    return GeneratorState(generator.config, {**generator.arrays, **its})


def target_of(sums: moments.Floats, counts: moments.Floats, lengths: moments.Floats) -> Target:
    """The mean of each class, and its weight: less where noise is longer than any mean can be.

    A mean of unit vectors has norm one at most; its noise has length σ√F/n.
    """
    weights = 1 / (1 + lengths**2)
    return Target(
        (sums / counts[:, None]).astype(np.float32),
        (weights / weights.max()).astype(np.float32),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPNTK(MomentMatching):
    """Gradients of an untrained network.

    Attributes
    ----------
    net : "fc", fully connected; or "cnn", which sees every number by itself first.
    widths : of the hidden layers; for "cnn" the channels, and the hidden layer.
    """

    net: Literal["fc", "cnn"] = "fc"
    widths: tuple[int, ...] = (800,)

    name = "dp-ntk"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.net not in ("fc", "cnn"):
            raise UserError(f"--net is fc or cnn, not '{self.net}'")
        if self.net == "cnn" and len(self.widths) != 2:
            raise UserError("--net cnn needs two widths, of channels and hidden: --widths 30,200")

    def features(self, dimension: int) -> FeatureMap:
        """The empirical NTK in full."""
        if self.net == "cnn":
            channels, width = self.widths
            return ConvNTK(dimension=dimension, channels=channels, width=width)
        return DenseNTK(dimension=dimension, widths=self.widths)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPMERF(MomentMatching):
    """Random Fourier features of a Gaussian kernel, at so many `frequencies`.

    If they are not given, 2500, but at most 20 a coordinate.
    """

    frequencies: int | None = None

    name = "dp-merf"

    def features(self, dimension: int) -> FeatureMap:
        """At a length scale that the dimension gives: no median of distances of private records."""
        count = self.frequencies or min(2500, 20 * dimension)
        return Fourier(dimension=dimension, count=count, length_scale=length_scale(dimension))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPHP(MomentMatching):
    """Hermite polynomial features up to this `order`."""

    order: int = 20

    name = "dp-hp"

    def features(self, dimension: int) -> FeatureMap:
        """Sum kernel over all coordinates, product kernel over some."""
        return Hermite(dimension=dimension, order=self.order, subset=min(2, dimension))
