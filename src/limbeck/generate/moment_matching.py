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
import math
from typing import ClassVar, Literal

import jax
import numpy as np
from numpy.typing import NDArray

from limbeck.data.schema import HasSchema, Schema
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap
from limbeck.features.bins import number_coordinates
from limbeck.features.conv_ntk import ConvNTK
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier, length_scale
from limbeck.features.hermite import Hermite
from limbeck.features.mixed import Mixed, columns_of
from limbeck.features.quantiles import QuantileMap, edges_of, quantiles_of, thresholds_of
from limbeck.generate import labels
from limbeck.generate.training import Descent, Target, train
from limbeck.measure.contributions.counts import CLASS_COUNTS, HISTOGRAMS, ClassCounts, Histograms
from limbeck.measure.contributions.embedding import EMBEDDING, embedding_sum
from limbeck.measure.rows import Rows, read
from limbeck.method import Method, setting
from limbeck.models import class_filter, generators, labeller, sampling
from limbeck.models.generators import COLOUR, ROWS, GeneratorConfig
from limbeck.models.state import GeneratorState
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.noise import Entropy
from limbeck.privacy.plan import Needs, Plan
from limbeck.privacy.run import Run
from limbeck.release.bundle import Generated

Floats = NDArray[np.float64]

# Channels of the maps of grey images.
GREY = (4,)


class MomentMatching(Method):
    """What the three methods have in common."""

    records: int = setting(
        default=10_000, meaning="Number of records in the bundle; more can be drawn later."
    )
    steps: int | None = setting(
        default=None,
        meaning=(
            "Training steps of the generator; by default 2000 for tables and 8000 for images, "
            "fewer where noise exceeds the means."
        ),
    )
    batch: int | None = setting(
        default=None,
        meaning="Synthetic records in a training step; by default 1000 for tables, 250 for images.",
    )
    learning_rate: float = setting(
        default=0.01, meaning="Rate of Adam, which falls to zero along a cosine."
    )
    latent_dim: int | None = setting(
        default=None,
        meaning="Dimension of the generator's input; by default 10 for tables, 20 for images.",
    )
    reject_misclassified: bool = setting(
        default=True, meaning="Draw images again that look like another class than theirs."
    )
    label_with: Literal["class", "readout"] = setting(
        default="class",
        meaning=(
            "How generated images are labelled: class keeps the class that they were "
            "generated for, readout uses a private classifier."
        ),
    )
    count_share: float = setting(
        default=0.01, meaning="Share of the noise budget for the class counts."
    )
    histogram_share: float = setting(
        default=0.05, meaning="Share of the noise budget for column histograms."
    )
    label_share: float = setting(
        default=2.0,
        meaning="Share of the noise budget for label_with=readout; the embedding has one.",
    )

    command: ClassVar = "generate"
    guarantee: ClassVar = (
        "(ε, δ)-DP by Gaussian noise on class-wise sums of features, class counts and (tables) "
        "histograms; with label_with=readout also on 100 gradients"
    )
    docs: ClassVar = "docs/moment_matching.md"

    @abc.abstractmethod
    def features(self, dimension: int) -> FeatureMap:
        """The feature map for so many numbers in [0, 1]."""

    def plan(self, schema: Schema, budget: Budget | None) -> Plan:
        """One draw each of the embedding, the class counts and, for tables, the histograms."""
        if self.label_with == "readout" and not schema.is_image:
            raise UserError("label_with=readout is for images; leave it out for a table")
        measurements = [
            Measurement(purpose=EMBEDDING),
            Measurement(purpose=CLASS_COUNTS, share=self.count_share),
        ]
        if not schema.is_image and number_coordinates(schema):
            measurements.append(Measurement(purpose=HISTOGRAMS, share=self.histogram_share))
        if self.label_with == "readout":
            measurements.append(labels.planned(self.label_share))
        phi, descent = self.map_for(schema), self.descent_for(schema, 1.0)
        numbers = phi.size * len(schema.classes)
        needs = Needs(
            memory=4e8 + 60 * numbers,
            seconds=10 + descent.steps * (0.004 + numbers / 5e8),
            memory_per_record=3000 if self.label_with == "readout" else 0,
            seconds_per_record=phi.size / 1e10 + 2e-5,
        )
        return Plan(measurements=tuple(measurements), needs=needs)

    def run(self, private: HasSchema, run: Run) -> Generated:
        """The generated records and their generator, by Algorithm 1 of DP-NTK."""
        schema = private.schema
        phi, rows = self.map_for(schema), read(private, run, "features")

        # Behind the wall: where the numbers of a table are, one noisy sum of features a class, and
        # a readout if there is to be one.
        quantiles = QuantileMap()
        if not schema.is_image and number_coordinates(schema):
            quantiles = _quantiles(schema, rows, run)
        embedding = embedding_sum(phi, len(schema.classes))
        sums = run.sum(rows, embedding, quantiles, purpose=EMBEDDING)
        counts = run.sum(rows, ClassCounts(len(schema.classes)), purpose=CLASS_COUNTS)
        counts = np.maximum(counts, run.noise_multiplier(CLASS_COUNTS))
        readout = None
        if self.label_with == "readout":
            readout = labels.measure(private, counts, run)

        # Post-processing: a generator with these moments, and records from it.
        generator = self._generator(schema, phi, quantiles, sums, counts, run)
        if readout:
            generator = labeller.added(generator, readout)
        elif self.reject_misclassified and schema.is_image:
            generator = _filtered(schema, generator, run.entropy)
        x, classes = sampling.draw(schema, generator, self.records, run.entropy)
        return Generated.of(
            method=self, schema=schema, x=x, labels=classes, generator=generator, **run.made()
        )

    def map_for(self, schema: Schema) -> FeatureMap:
        """For images all pixels; for tables the numbers, and the columns and their pairs."""
        if schema.is_image:
            return self.features(schema.width)
        numbers = number_coordinates(schema)
        inner = self.features(len(numbers)) if numbers else None
        return Mixed(columns=columns_of(schema), inner=inner)

    def _generator(
        self,
        schema: Schema,
        phi: FeatureMap,
        quantiles: QuantileMap,
        sums: Floats,
        counts: Floats,
        run: Run,
    ) -> GeneratorState:
        lengths = run.noise_multiplier(EMBEDDING) * math.sqrt(sums.shape[1]) / counts
        target = target_of(sums, counts, lengths)
        shape = self._shape(schema)
        descent = self.descent_for(schema, float(np.median(lengths)))
        key = jax.random.key(run.key_data())
        net, frozen = train(schema, phi, target, shape, descent, key, run.progress)
        config = {
            **shape._asdict(),
            "shares": (counts / counts.sum()).tolist(),
            "places": quantiles.to_json(),
        }
        return GeneratorState(config, generators.to_arrays(net, frozen))

    def descent_for(self, schema: Schema, noise: float) -> Descent:
        """As it was asked for, or many small steps for images and fewer large ones for tables.

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
            return GeneratorConfig(self.latent_dim or 10, ROWS)
        return GeneratorConfig(self.latent_dim or 20, COLOUR if schema.image_shape[2] > 1 else GREY)


def _quantiles(schema: Schema, rows: Rows, run: Run) -> QuantileMap:
    """The quantile map, from one noisy histogram of each column of numbers."""
    numbers, edges = number_coordinates(schema), edges_of(schema)
    contribution = Histograms(numbers, tuple(thresholds_of(its) for its in edges))
    counts = run.sum(rows, contribution, purpose=HISTOGRAMS)
    histograms = [part[: len(its) - 1] for part, its in zip(counts, edges, strict=True)]
    deviation = run.deviation(HISTOGRAMS, contribution)
    total = float(np.median([part.sum() for part in histograms]))
    at = [quantiles_of(histogram, deviation, total) for histogram in histograms]
    return QuantileMap(numbers, edges, at)


def _filtered(schema: Schema, generator: GeneratorState, entropy: Entropy) -> GeneratorState:
    """The same with a class filter, which learns from equally many of its images of each class."""
    classes = len(schema.classes)
    equal = GeneratorState(
        {**generator.config, "shares": [1 / classes] * classes}, generator.arrays
    )
    x, drawn = sampling.draw(schema, equal, max(class_filter.IMAGES, classes), entropy)
    if not np.isfinite(x).all():  # which the bundle refuses
        return generator
    its = class_filter.to_arrays(class_filter.learn(x, drawn, classes))
    return GeneratorState(generator.config, {**generator.arrays, **its})


def target_of(sums: Floats, counts: Floats, lengths: Floats) -> Target:
    """The mean of each class, and its weight: less where noise is longer than any mean can be.

    A mean of unit vectors has norm one at most; its noise has length σ√F/n.
    """
    weights = 1 / (1 + lengths**2)
    return Target(
        (sums / counts[:, None]).astype(np.float32),
        (weights / weights.max()).astype(np.float32),
    )


class DPNTK(MomentMatching):
    """DP-NTK: the features are gradients of an untrained network."""

    net: Literal["fc", "cnn"] = setting(
        default="fc",
        meaning="Network: fc is fully connected, cnn takes every number by itself first.",
    )
    widths: tuple[int, ...] = setting(
        default=(800,),
        meaning="Widths of the hidden layers; for cnn the channels, and the hidden layer.",
    )

    name: ClassVar = "dp-ntk"
    summary: ClassVar = (
        "a generator that matches class-wise means of an untrained network's gradients"
    )
    paper: ClassVar = "Yang et al., Differentially Private Neural Tangent Kernels, 2023"

    def check(self) -> None:
        """A convolutional network has two widths."""
        if self.net == "cnn" and len(self.widths) != 2:
            raise UserError("net=cnn needs two widths, of channels and hidden: widths=30,200")

    def features(self, dimension: int) -> FeatureMap:
        """The empirical NTK in full."""
        if self.net == "cnn":
            channels, width = self.widths
            return ConvNTK(dimension=dimension, channels=channels, width=width)
        return DenseNTK(dimension=dimension, widths=self.widths)


class DPMERF(MomentMatching):
    """DP-MERF: random Fourier features of a Gaussian kernel."""

    frequencies: int | None = setting(
        default=None, meaning="Number of frequencies; by default 2500, but at most 20 a coordinate."
    )

    name: ClassVar = "dp-merf"
    summary: ClassVar = "a generator that matches class-wise means of random Fourier features"
    paper: ClassVar = "Harder, Adamczewski & Park, DP-MERF, AISTATS 2021"

    def features(self, dimension: int) -> FeatureMap:
        """At a length scale that the dimension gives: no median of distances of private records."""
        count = self.frequencies or min(2500, 20 * dimension)
        return Fourier(dimension=dimension, count=count, length_scale=length_scale(dimension))


class DPHP(MomentMatching):
    """DP-HP: Hermite polynomial features."""

    order: int = setting(default=20, meaning="Largest order of the Hermite polynomials.")

    name: ClassVar = "dp-hp"
    summary: ClassVar = "a generator that matches class-wise means of Hermite polynomial features"
    paper: ClassVar = (
        "Vinaroz et al., Hermite Polynomial Features for Private Data Generation, ICML 2022"
    )

    def features(self, dimension: int) -> FeatureMap:
        """Sum kernel over all coordinates, product kernel over some."""
        return Hermite(dimension=dimension, order=self.order, subset=min(2, dimension))
