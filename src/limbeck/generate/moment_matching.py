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

import jax
import numpy as np

from limbeck.bundle import Bundle, Saved
from limbeck.data.schema import Described, Schema
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap
from limbeck.features.dense_ntk import DenseNTK
from limbeck.features.fourier import Fourier, length_scale
from limbeck.features.hermite import Hermite
from limbeck.features.mixed import Mixed, numbers_and_choices
from limbeck.generate import nets, sampling
from limbeck.generate.nets import Shape
from limbeck.generate.training import Descent, Target, train
from limbeck.measure import moments
from limbeck.measure.moments import COUNTS, EMBEDDING, Moments
from limbeck.privacy.accounting import calibrate, interrupted
from limbeck.privacy.budget import Budget, Measurement
from limbeck.privacy.ledger import Ledger
from limbeck.privacy.noise import Entropy, entropy
from limbeck.progress import Progress, silent

# Layers of the generators: channels of the maps of pictures, grey or colour; widths for tables.
GREY, COLOUR, ROWS = (16, 8), (64, 32), (200, 200)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MomentMatching(abc.ABC):
    """What the three have in common.

    Attributes
    ----------
    records : how many records the bundle holds; more can be drawn from its generator.
    steps, batch, learning_rate : of the generator's training: Adam, at a rate that falls to zero
        along a cosine, on so many records at a time, equally many of each class.
    code : the number of random numbers that a record is made of.
    count_share : of the noise budget, for the number of records in each class.
    """

    records: int = 10_000
    steps: int = 2000
    batch: int = 1000
    learning_rate: float = 0.01
    code: int = 10
    count_share: float = 0.01

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            option = "--" + field.name.replace("_", "-")
            if isinstance(value, int | float):
                if not 0 < value < math.inf:
                    raise UserError(f"{option} must be a positive number, not {value:g}")
            else:
                object.__setattr__(self, field.name, tuple(value))  # JSON has lists
                if not value or min(value) < 1:
                    raise UserError(f"{option} must be positive numbers, as in 800,1000")

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
        phi = self.map_for(schema)
        progress("calibrate", 0, 0)
        plan = [
            Measurement(purpose=EMBEDDING),
            Measurement(purpose=COUNTS, share=self.count_share),
        ]
        ledger = Ledger(calibrate(plan, budget))
        noise = {entry.purpose: float(entry.noise_multiplier or 0) for entry in ledger.plan}

        try:
            # Behind the wall: one noisy sum of features a class.
            measured = moments.measure(
                private, phi, ledger=ledger, entropy=source, progress=progress
            )

            # Post-processing: a generator with these moments, and records from it.
            generator = self._generator(schema, phi, measured, noise, source, progress)
            x, labels = sampling.draw(schema, generator, self.records, source)
        except KeyboardInterrupt:
            raise interrupted(ledger, budget) from None
        return Bundle.generated(
            method=self,
            schema=schema,
            x=x,
            labels=labels,
            generator=generator,
            budget=budget,
            ledger=ledger,
            seeded=source.seeded,
        )

    def map_for(self, schema: Schema) -> FeatureMap:
        """For pictures all pixels; for tables the numbers, with the categories beside them."""
        if schema.is_image:
            return self.features(schema.width)
        numbers, choices = numbers_and_choices(schema)
        inner = self.features(len(numbers)) if numbers else None
        return Mixed(dimension=schema.width, numbers=numbers, choices=choices, inner=inner)

    def _generator(
        self,
        schema: Schema,
        phi: FeatureMap,
        measured: Moments,
        noise: dict[str, float],
        source: Entropy,
        progress: Progress,
    ) -> Saved:
        # Whole numbers: the last digits of a noisy number are nobody's business.
        counts = np.maximum(np.rint(measured.counts), noise[COUNTS])
        target = target_of(measured.sums, counts, noise[EMBEDDING])
        widths = (COLOUR if schema.image_shape[2] > 1 else GREY) if schema.is_image else ROWS
        shape = Shape(self.code, widths)
        per_class = max(1, round(self.batch / len(counts)))
        descent = Descent(self.steps, per_class, self.learning_rate)
        key = jax.random.key(int.from_bytes(source.bytes(4), "little"))
        net, frozen = train(schema, phi, target, shape, descent, key, progress)
        config = {**shape._asdict(), "shares": (counts / counts.sum()).tolist()}
        return Saved(config, nets.to_arrays(net, frozen))


def target_of(sums: moments.Floats, counts: moments.Floats, noise: float) -> Target:
    """The mean of each class, and its weight: less where noise is longer than any mean can be.

    A mean of unit vectors has norm one at most; its noise has length σ√F/n.
    """
    lengths = noise * math.sqrt(sums.shape[1]) / counts
    weights = 1 / (1 + lengths**2)
    return Target(
        (sums / counts[:, None]).astype(np.float32),
        (weights / weights.max()).astype(np.float32),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPNTK(MomentMatching):
    """Gradients of an untrained network with hidden layers of these `widths`."""

    widths: tuple[int, ...] = (800,)

    name = "dp-ntk"

    def features(self, dimension: int) -> FeatureMap:
        """The empirical NTK in full."""
        return DenseNTK(dimension=dimension, widths=self.widths)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPMERF(MomentMatching):
    """Random Fourier features of a Gaussian kernel, at so many `frequencies`."""

    frequencies: int = 2500

    name = "dp-merf"

    def features(self, dimension: int) -> FeatureMap:
        """At a length scale that the dimension gives: no median of distances of private records."""
        scale = length_scale(dimension)
        return Fourier(dimension=dimension, count=self.frequencies, length_scale=scale)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DPHP(MomentMatching):
    """Hermite polynomial features up to this `order`."""

    order: int = 20

    name = "dp-hp"

    def features(self, dimension: int) -> FeatureMap:
        """Sum kernel over all coordinates, product kernel over some."""
        return Hermite(dimension=dimension, order=self.order, subset=min(2, dimension))
