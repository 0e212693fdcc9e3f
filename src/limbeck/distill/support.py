"""What KIP and DP-KIP share: the regression problem, its points, and how they descend.

All of it is public: it sees the schema, the settings and what the measurements return.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy.typing import NDArray

from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.features import canvas, kernels
from limbeck.features.base import FeatureMap, InnerProductKernel
from limbeck.features.canvas import Canvas
from limbeck.features.inputs import Inputs, inputs_of
from limbeck.measure.contributions.closed_form import centred_one_hot
from limbeck.method import Method
from limbeck.models import ridge
from limbeck.privacy.noise import Entropy, standard_normal
from limbeck.privacy.run import Run
from limbeck.progress import Progress, silent
from limbeck.release.bundle import Distilled

Gradient = Callable[[NDArray[Any]], NDArray[np.floating]]


class Regression(NamedTuple):
    """What is regressed on what."""

    kernel: InnerProductKernel | FeatureMap
    inputs: Inputs
    canvas: Canvas
    support_y: NDArray[np.float64]
    regularisation: float

    def solution(self, features: NDArray[np.floating]) -> ridge.Ridge:
        """The ridge solution on points with these features, in float64."""
        with jax.enable_x64(True):
            phi, y = jnp.asarray(features, jnp.float64), jnp.asarray(self.support_y)
            return ridge.solve(phi, y, self.regularisation)


class Settings(Protocol):
    """The settings that a regression problem depends on."""

    @property
    def per_class(self) -> int: ...  # noqa: D102
    @property
    def features(self) -> str: ...  # noqa: D102
    @property
    def regularisation(self) -> float: ...  # noqa: D102


def regression_for(settings: Settings, schema: Schema, share: float = 1.0) -> Regression:
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
            solution = regression.solution(features)
            direction = gradient(np.asarray(solution.readout))
            return np.asarray(ridge.pull_back(solution, jnp.asarray(direction, jnp.float64)))

    return through_features(regression, in_features)


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
            "a batch size needs the number of rows, which this schema keeps private; set "
            'sampling_rate instead, or declare "rows" in the schema if the number is public'
        )
    return min(1.0, batch / schema.public_rows)


def bundled(
    method: Method,
    features: str,
    schema: Schema,
    regression: Regression,
    support_x: NDArray[np.float32],
    run: Run,
) -> Distilled:
    """The support set as it is published."""
    inputs = regression.inputs
    return Distilled.of(
        method=method,
        schema=schema,
        x=inputs.to_support(np.asarray(canvas.draw(regression.canvas, jnp.asarray(support_x)))),
        y=regression.support_y + 1 / len(schema.classes),
        kernel=kernels.to_json(features, regression.kernel),
        regularisation=regression.regularisation,
        **run.made(),
    )
