"""Kernel inducing points (KIP), without privacy: the baseline, and what DP-KIP shares with it.

The support set minimises the kernel ridge loss of the records (Eq. 3),

    Σ_i ‖y_i − k(x_i, X_s) (K_ss + λ tr(K_ss)/m · I)⁻¹ y_s‖²,

by gradient descent from noise.

References
----------
Nguyen, Chen & Lee 2021, "Dataset Meta-Learning from Kernel Ridge-Regression".
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Described, Schema
from limbeck.errors import UserError
from limbeck.features import canvas, kernels
from limbeck.features.base import FeatureMap
from limbeck.features.canvas import Canvas
from limbeck.features.inputs import inputs_of
from limbeck.measure.exact import ExactGradient, ExactReadoutGradient
from limbeck.measure.gradients import GRADIENT
from limbeck.measure.records import Regression, centred_one_hot
from limbeck.models import ridge
from limbeck.privacy.budget import Budget
from limbeck.privacy.ledger import Entry, Ledger
from limbeck.privacy.noise import Entropy, entropy, standard_normal
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Bundle, Distilled

Gradient = Callable[[NDArray[Any]], NDArray[np.floating]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Descent:
    """How the support points follow their gradient.

    Adam is blind to the scale of gradients; SGD takes them as they come. The rate falls to zero
    as a half cosine over the steps, or stays constant as in the papers.
    """

    steps: int
    learning_rate: float
    optimiser: Literal["adam", "sgd"] = "adam"
    schedule: Literal["cosine", "constant"] = "cosine"

    @classmethod
    def of(cls, settings: Any, steps: int) -> "Descent":
        """As a method's settings say, for so many steps."""
        return cls(
            steps=steps,
            learning_rate=settings.learning_rate,
            optimiser=settings.optimiser,
            schedule=settings.schedule,
        )

    def transformation(self) -> optax.GradientTransformation:
        """The update rule, as optax has it."""
        rate: float | optax.Schedule = self.learning_rate
        if self.schedule == "cosine":
            rate = optax.cosine_decay_schedule(self.learning_rate, self.steps)
        return optax.adam(rate) if self.optimiser == "adam" else optax.sgd(rate)


def descend(
    descent: Descent,
    start: NDArray[np.float32],
    gradient: Gradient,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Follow `gradient` from `start` for all steps."""
    support_x, state = start, descent.transformation().init(jnp.asarray(start))
    for step in range(descent.steps):
        progress("distil", step, descent.steps)
        direction = jnp.asarray(gradient(support_x), jnp.float32)
        moved, state = _update(descent, direction, state, support_x)
        support_x = np.asarray(moved)
    progress("distil", descent.steps, descent.steps)
    return support_x


@functools.partial(jax.jit, static_argnames=("descent",))
def _update(
    descent: Descent,
    direction: Float[Array, "m d"],
    state: optax.OptState,
    support_x: Float[Array, "m d"],
) -> tuple[Float[Array, "m d"], optax.OptState]:
    updates, state = descent.transformation().update(direction, state)
    return optax.apply_updates(support_x, updates), state


def check_settings(settings: Any) -> None:
    """Refuse settings that cannot be, by their name on the command line."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        option = "--" + field.name.replace("_", "-")
        if isinstance(value, int | float) and not 0 < value < math.inf and value != field.default:
            raise UserError(f"{option} must be a positive number, not {value:g}")
        choices = [c for part in (field.type, *get_args(field.type)) for c in get_args(part)]
        words = [choice for choice in choices if isinstance(choice, str)]
        if isinstance(value, str) and words and value not in words:
            number = " or a number" if float in choices else ""
            raise UserError(f"{option} must be one of {', '.join(words)}{number}, not '{value}'")
    if getattr(settings, "sampling_rate", 1) > 1:
        raise UserError(f"--sampling-rate is a probability, not {settings.sampling_rate:g}")
    if settings.features != "auto":
        kernels.check(settings.features)


def regression_for(settings: Any, schema: Schema, share: float = 1.0) -> Regression:
    """The problem to solve: `per_class` points of every declared class, whatever the records hold.

    `share` is that of the frequencies in which the points of images are learned.
    """
    inputs = inputs_of(schema, share)
    kernel = kernels.for_schema(settings.features, schema, inputs)
    classes = len(schema.classes)
    labels = np.repeat(np.arange(classes), settings.per_class)
    return Regression(
        kernel,
        inputs,
        Canvas.plain(inputs.basis, len(labels)),
        centred_one_hot(labels, classes),
        settings.regularisation,
    )


def through_features(regression: Regression, gradient: Gradient) -> Gradient:
    """In coordinates, a `gradient` that is one with respect to the features of the points.

    Post-processing: it sees what `gradient` returned and the public support set.
    """
    phi, plane = regression.kernel, regression.canvas
    assert isinstance(phi, FeatureMap)

    def in_coordinates(support_x: NDArray[np.float32]) -> NDArray[np.floating]:
        features, pull_back = canvas.linearised(phi, plane, support_x)
        return pull_back(gradient(features))

    return in_coordinates


def through_readout(regression: Regression, gradient: Gradient) -> Gradient:
    """In coordinates, a `gradient` that is one with respect to the readout; post-processing too."""

    def in_features(features: NDArray[np.floating]) -> NDArray[np.floating]:
        with jax.enable_x64(True):
            solution = _solution(regression, features)
            direction = gradient(np.asarray(solution.readout))
            return np.asarray(ridge.pull_back(solution, jnp.asarray(direction, jnp.float64)))

    return through_features(regression, in_features)


def _solution(regression: Regression, features: NDArray[np.floating]) -> ridge.Ridge:
    phi, y = jnp.asarray(features, jnp.float64), jnp.asarray(regression.support_y)
    return ridge.solve(phi, y, regression.regularisation)


def noise_start(entropy: Entropy, regression: Regression, scale: float) -> NDArray[np.float32]:
    """Where the support points start: Gaussian noise, which knows nothing of any record."""
    shape = len(regression.support_y), regression.inputs.basis.shape[1]
    return (scale * standard_normal(entropy, shape)).astype(np.float32)


def sampling_probability(schema: Schema, batch: int | None, fraction: float) -> float:
    """The chance of a record to be in a batch; `batch` is its expected size, if that is given."""
    if batch is None:
        return fraction
    if schema.public_rows is None:
        raise UserError(
            "a batch size needs the number of rows, which this schema keeps private; give the "
            'sampling rate instead (--sampling-rate), or declare "rows" in the schema if the '
            "number is public"
        )
    return min(1.0, batch / schema.public_rows)


@dataclasses.dataclass(frozen=True, kw_only=True)
class KIP:
    """Distil without privacy. A baseline: its result must not be published.

    Attributes
    ----------
    per_class : support points for each class.
    features : the kernel, by name.
    steps : how many gradient steps are taken.
    batch, sampling_rate : expected batch size, or the chance of each record to be in a batch; on
        finite features every step takes all records.
    learning_rate, optimiser, schedule : see `Descent`.
    regularisation : λ, relative to the mean of the kernel's diagonal.
    label_solve : whether the labels are solved for at the end, for the points found.
    """

    per_class: int = 10
    features: str = "fc-ntk"
    steps: int = 500
    sampling_rate: float = 1 / 12
    batch: int | None = None
    learning_rate: float = 0.05
    optimiser: Literal["adam", "sgd"] = "adam"
    schedule: Literal["cosine", "constant"] = "cosine"
    regularisation: float = 1e-5
    start_scale: float = 0.3
    label_solve: bool = False

    name = "kip"

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(
        self,
        private: Described,
        budget: Budget | None = None,
        *,
        seed: int | None = None,
        progress: Progress = silent,
    ) -> Bundle:
        """The distilled set. A budget is refused, because nothing would keep to it."""
        if budget is not None:
            raise UserError("kip has no privacy, so it takes no budget; use dp-kip")
        schema, source = private.schema, entropy(seed)
        regression = regression_for(self, schema)
        plan = Entry(purpose=GRADIENT, draws=self.steps + 1, noise_multiplier=None)
        ledger = Ledger([plan])
        start = noise_start(source, regression, self.start_scale)
        descent = Descent.of(self, self.steps)
        support: NDArray[np.floating]
        solved: Callable[[NDArray[Any]], NDArray[np.float64]]
        if isinstance(regression.kernel, FeatureMap):
            exact = ExactReadoutGradient(private, regression, ledger, progress)
            support_x = descend(descent, start, through_readout(regression, exact), progress)
            support = _single_readouts(regression, support_x)
            solved = exact.solved_labels
        else:
            gradient = ExactGradient(
                private,
                regression,
                sampling_probability=sampling_probability(schema, self.batch, self.sampling_rate),
                ledger=ledger,
                entropy=source,
                progress=progress,
            )
            support = support_x = descend(descent, start, gradient, progress)
            solved = gradient.solved_labels
        if self.label_solve:
            regression = regression._replace(support_y=solved(support))
        return bundled(self, schema, regression, support_x, None, ledger, source)


def _single_readouts(
    regression: Regression, support_x: NDArray[np.float32]
) -> NDArray[np.floating]:
    """Φᵀ M⁻¹: the readout of each support point if its label alone were one."""
    assert isinstance(regression.kernel, FeatureMap)
    with jax.enable_x64(True):
        features = canvas.features(regression.kernel, regression.canvas, support_x)
        solution = _solution(regression, features)
        return np.asarray(solution.features.T @ solution.inverse)


def bundled(
    settings: Any,
    schema: Schema,
    regression: Regression,
    support_x: NDArray[np.float32],
    budget: Budget | None,
    ledger: Ledger,
    source: Entropy,
) -> Bundle:
    """The support set as it is published."""
    inputs = regression.inputs
    return Distilled.of(
        method=settings,
        schema=schema,
        x=inputs.to_support(np.asarray(canvas.draw(regression.canvas, jnp.asarray(support_x)))),
        y=regression.support_y + 1 / len(schema.classes),
        kernel=kernels.to_json(settings.features, regression.kernel),
        regularisation=regression.regularisation,
        budget=budget,
        ledger=ledger,
        seeded=source.seeded,
    )
