"""Points whose kernel ridge readout is a given one: step 2 of readout distillation.

Given W̃, points X with features Φ, and labels Y = Mα, have the readout Φᵀα for any α. So the best
that X can do is W̃ projected on the span of Φ, and X is moved to bring that near,

    min over X and α of  ‖P(W̃ − Φᵀα)‖² / ‖P W̃‖².

P says what near means. For pictures all directions count alike (P = I), and then α = M⁻¹ΦW̃ and
Y = ΦW̃: a point's label is what the readout says of it. For tables P are the features of rows made
up from the schema, because there a bias that is off by little can put all rows in one class.

Nothing here is private: it sees the readout, the schema and fresh noise, and may take its time.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

from limbeck.data.schema import Schema
from limbeck.distill.support import Descent, descend
from limbeck.features import canvas
from limbeck.features.base import FeatureMap, features_of
from limbeck.features.bins import Bins
from limbeck.features.canvas import Canvas
from limbeck.features.inputs import Inputs
from limbeck.privacy.noise import Entropy, standard_normal
from limbeck.progress import Progress, silent

Floats = NDArray[np.float64]

# A round of optimisation that brings the residual down by less than this share is the last.
STALLED = 0.02
STEPS_A_ROUND = 100
# Rows made up to compare readouts of tables by, and the weight of all directions alike.
MADE_UP = 1000
STARTS = 6
# A residual that is near enough not to start again.
NEAR = 0.01
EVENLY = 0.1


class Search:
    """Looks for the points; `settings` are those of `Readout`."""

    def __init__(
        self, settings: Any, phi: FeatureMap, inputs: Inputs, schema: Schema, readout: Floats
    ) -> None:
        self._settings, self._phi, self._inputs = settings, phi, inputs
        self._schema, self._readout = schema, readout
        self._classes = np.repeat(np.arange(readout.shape[1]), settings.per_class)
        self._canvas = Canvas.bare(inputs.dimension, len(self._classes))
        edges = np.asarray(inputs.from_support(np.array([0.0, 1.0])), np.float32)
        self._low, self._high = map(float, edges if settings.clip_to_domain else (-np.inf, np.inf))
        self._probes: Floats | None = None
        self.residual = math.inf

    def run(
        self, entropy: Entropy, progress: Progress = silent
    ) -> tuple[NDArray[np.float32], Floats]:
        """Points and centred labels.

        For pictures Adam starts again, with its rate, until a round brings little more.
        """
        restarts = self._settings.restarts
        progress("distil", 0, restarts)
        if not self._schema.is_image:
            return self._best_rows(entropy, progress)
        found = self._pictures(entropy)
        best, least = found, math.inf
        for done in range(restarts):
            progress("distil", done, restarts)
            found = self._inside(self._descend(found, self._of_residual))
            residual = float(self._at(found).residual)
            enough = residual > (1 - STALLED) * least
            if residual < least:
                best, least = found, residual
            if enough:
                break
        progress("distil", restarts, restarts)
        self.residual = least
        return best, np.asarray(self._at(best).labels)

    def _best_rows(
        self, entropy: Entropy, progress: Progress
    ) -> tuple[NDArray[np.float32], Floats]:
        """Of several starts, the rows that come nearest; the first that come near enough."""
        best, self.residual = np.zeros((0, 0), np.float32), math.inf
        starts = STARTS if isinstance(self._phi, Bins) else 1
        for done in range(starts):
            progress("distil", done, starts)
            found = self._downhill(self._rows(entropy))
            residual = float(self._at(found).residual)
            if not done or residual < self.residual:
                best, self.residual = found, residual
            if residual < NEAR:
                break
        progress("distil", starts, starts)
        return best, np.asarray(self._at(best).labels)

    def _pictures(self, entropy: Entropy) -> NDArray[np.float32]:
        """From noise, each to where the readout of its class is largest."""
        shape = len(self._classes), self._inputs.dimension
        noise = (self._settings.start_scale * standard_normal(entropy, shape)).astype(np.float32)
        return self._descend(noise, lambda features: -self._readout.T[self._classes])

    def _rows(self, entropy: Entropy) -> NDArray[np.float32]:
        """Of made-up rows, one after the other the one that brings the readout nearest.

        Values are drawn evenly from the declared ones, and numbers evenly between knots. The first
        of such rows are those by which readouts are compared from then on.
        """
        rows = self._inputs.from_support(_made_up(self._schema, self._phi, entropy))
        features = features_of(self._phi, rows).astype(np.float64)
        if self._probes is None and isinstance(self._phi, Bins):  # others have too many features
            evenly = math.sqrt(EVENLY / self._phi.size) * np.eye(self._phi.size)
            self._probes = np.concatenate([features / math.sqrt(len(rows)), evenly])
        scores = features @ self._readout
        of_class = (scores - scores.mean(axis=0)).argmax(axis=1)
        chosen: list[int] = []
        for label in np.tile(np.arange(scores.shape[1]), self._settings.per_class):
            allowed = np.flatnonzero(of_class == label)
            chosen.append(_nearest(features, scores, chosen, allowed))
        return rows[np.array(chosen).reshape(self._settings.per_class, -1).T.ravel()]

    def _descend(
        self,
        start: NDArray[np.float32],
        by_features: Callable[[NDArray[np.float32]], NDArray[Any]],
    ) -> NDArray[np.float32]:
        """Adam along a gradient that is one with respect to the features of the points."""

        def gradient(support: NDArray[np.floating]) -> NDArray[np.floating]:
            inside = self._inside(support)
            features, pull_back = canvas.linearised(self._phi, self._canvas, inside)
            found = pull_back(by_features(features)) + self._roughness(inside)
            outwards = (inside - support) * found > 0  # against the edge that it is beyond already
            return np.where(outwards, 0, found)

        rate = self._settings.learning_rate
        return descend(Descent(steps=STEPS_A_ROUND, learning_rate=rate), start, gradient)

    def _downhill(self, start: NDArray[np.float32]) -> NDArray[np.float32]:
        """L-BFGS, which never climbs: rows at their best leave little room for Adam's strides.

        Numbers move by their place among the knots.
        """
        phi = self._phi if isinstance(self._phi, Bins) else Bins(dimension=0, numbers=(), knots=())
        low, high = np.full(start.shape, self._low), np.full(start.shape, self._high)
        for column, knots in zip(phi.numbers, phi.knots, strict=True):
            low[:, column], high[:, column] = 0, len(knots) - 1

        def value_and_gradient(flat: Floats) -> tuple[float, Floats]:
            support, slopes = phi.from_places(flat.reshape(start.shape))
            features, pull_back = canvas.linearised(
                self._phi, self._canvas, support.astype(np.float32)
            )
            with jax.enable_x64(True):
                gradient, match = _slope(*self._problem(features))
            back = pull_back(np.asarray(gradient)) * slopes
            return float(match.residual), back.ravel()

        found = minimize(
            value_and_gradient,
            phi.to_places(start).ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([low.ravel(), high.ravel()], axis=1),
            options={"maxiter": STEPS_A_ROUND * self._settings.restarts},
        )
        return self._inside(phi.from_places(found.x.reshape(start.shape))[0])

    def _of_residual(self, features: NDArray[np.float32]) -> Floats:
        with jax.enable_x64(True):
            gradient, _ = _slope(*self._problem(features))
            return np.asarray(gradient)

    def _at(self, support: NDArray[np.float32]) -> "Match":
        with jax.enable_x64(True):
            features = canvas.features(self._phi, self._canvas, support)
            return jax.tree.map(np.asarray, _match(*self._problem(features)))

    def _problem(self, features: NDArray[np.float32]) -> tuple[Any, ...]:
        probes = None if self._probes is None else jnp.asarray(self._probes)
        wide = jnp.asarray(features, jnp.float64)
        return wide, jnp.asarray(self._readout), probes, self._hard, self._settings.regularisation

    @property
    def _hard(self) -> Floats | None:
        if self._settings.labels == "soft":
            return None
        classes = self._readout.shape[1]
        return np.eye(classes)[self._classes] - 1 / classes

    def _inside(self, support: NDArray[np.floating]) -> NDArray[np.float32]:
        return np.clip(support, self._low, self._high).astype(np.float32)

    def _roughness(self, support: NDArray[np.float32]) -> NDArray[np.float32]:
        """The gradient of the total variation, of pictures that are to be smooth."""
        if not self._settings.smoothness:
            return np.zeros_like(support)
        pictures = jnp.asarray(support).reshape(-1, *self._schema.image_shape)
        found = np.asarray(_variation(pictures), np.float32).reshape(support.shape)
        return np.float32(self._settings.smoothness) * found


def _made_up(schema: Schema, phi: FeatureMap, entropy: Entropy) -> NDArray[np.float32]:
    """Encoded rows of values that the schema declares, all equally likely."""
    even = ndtr(standard_normal(entropy, (MADE_UP, len(schema.columns))))
    rows = np.zeros((MADE_UP, schema.width), np.float32)
    knots = dict(zip(phi.numbers, phi.knots, strict=True)) if isinstance(phi, Bins) else {}
    start = 0
    for column, share in zip(schema.columns, even.T, strict=True):
        if column.kind == "categorical":
            rows[np.arange(MADE_UP), start + (share * column.width).astype(np.intp)] = 1
        elif start in knots:
            places = np.linspace(0, 1, len(knots[start]))
            rows[:, start] = np.interp(share, places, knots[start])
        else:
            rows[:, start] = share > 0.5
        start += column.width
    return rows


def _nearest(features: Floats, scores: Floats, chosen: list[int], allowed: NDArray[np.intp]) -> int:
    """Which row to add, so that most of the scores of all rows are explained by the chosen ones.

    A step of orthogonal matching pursuit, on the features less what the chosen ones span.
    """
    if chosen:
        basis = np.linalg.qr(features[chosen].T)[0]
        features = features - (features @ basis) @ basis.T
    norms = np.linalg.norm(features[allowed], axis=1)
    fits = np.linalg.norm(features[allowed] @ (features.T @ scores), axis=1)
    return int(allowed[np.argmax(fits / np.maximum(norms, 1e-3))]) if len(allowed) else 0


class Match(NamedTuple):
    """How near the points come to the readout, and with which labels."""

    residual: Float[Array, ""]
    labels: Float[Array, "m c"]


@jax.jit
def _match(
    phi: Float[Array, "m f"],
    readout: Float[Array, "f c"],
    probes: Float[Array, "n f"] | None,
    hard: Float[Array, "m c"] | None,
    regularisation: Float[Array, ""],
) -> Match:
    """The least ‖P(W̃ − Φᵀα)‖² / ‖P W̃‖² over α, with a little ridge, and the labels Y = Mα.

    P are the features by which readouts are compared, or none for all directions alike, for which
    Y = ΦW̃. Hard labels leave only their scale to choose.
    """

    def seen(w: Float[Array, "f k"]) -> Float[Array, "n k"]:
        return w if probes is None else probes @ w

    def ridged(gram: Float[Array, "m m"]) -> Float[Array, "m m"]:
        return gram + regularisation * jnp.trace(gram) / len(gram) * jnp.eye(len(gram))

    wanted, points, m = seen(readout), seen(phi.T), ridged(phi @ phi.T)
    if hard is None:
        alpha = jnp.linalg.solve(ridged(points.T @ points), points.T @ wanted)
    else:
        alpha = jnp.linalg.solve(m, hard)
        found = points @ alpha
        alpha = alpha * jnp.sum(wanted * found) / jnp.sum(found**2)
    residual = jnp.sum((wanted - points @ alpha) ** 2) / jnp.sum(wanted**2)
    return Match(residual, m @ alpha if hard is None else hard)


def _residual(*problem: Any) -> tuple[Float[Array, ""], Match]:
    match = _match(*problem)
    return match.residual, match


_slope = jax.jit(jax.grad(_residual, has_aux=True))


@jax.jit
@jax.grad
def _variation(x: Float[Array, "m h w c"]) -> Float[Array, ""]:
    """The mean over points of the mean of |differences of neighbours|, rounded off at zero."""
    steps = jnp.diff(x, axis=1), jnp.diff(x, axis=2)
    means = [jnp.mean(jnp.sqrt(step**2 + 1e-4)) for step in steps]
    return jnp.sum(jnp.stack(means))
