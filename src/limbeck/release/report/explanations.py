"""The words of the page that are not the data card's: what a promise means, what was public."""

import math

import numpy as np

from limbeck.data.schema import Schema
from limbeck.privacy.budget import Adjacency
from limbeck.release import card
from limbeck.release.bundle import Bundle

SCORES = (
    "THIS COPY HOLDS PRIVATE RESULTS. Its scores were computed on private data and are not covered "
    "by the privacy statement. Do not publish it without thought."
)
_CHANGES = {
    Adjacency.ADD_REMOVE: "add any one record to the private data, or take any one away",
    Adjacency.REPLACE: "replace any one record of the private data by any other",
}


def warnings(bundle: Bundle, with_scores: bool) -> list[str]:
    """What a reader must see before anything else; empty for a release as it should be."""
    lines = card.warnings(bundle)
    if bundle.budget is None:
        lines.insert(0, card.promise(bundle))
    return [*lines, SCORES] if with_scores else lines


def meaning(bundle: Bundle) -> str:
    """The guarantee for those who have not met ε and δ before."""
    assert bundle.budget is not None
    factor = f"e to the power of {card.rounded_up(bundle.epsilon)}"
    if bundle.epsilon < 10:
        factor = f"{math.ceil(math.exp(bundle.epsilon) * 100) / 100:g}"
    return (
        f"In plain words: {_CHANGES[bundle.budget.adjacency]}, and the chance of any outcome of "
        f"this release grows by a factor of at most {factor}, plus "
        f"{np.format_float_positional(float(card.rounded_up(bundle.budget.delta)))}. Whatever else "
        "somebody knows, this bounds what the release can tell them about a single record."
    )


def assumed_public(bundle: Bundle) -> list[str]:
    """What the guarantee takes as known to everybody."""
    schema, budget = bundle.schema, bundle.budget
    assert budget is not None
    public = [
        f"The schema: {_described(schema)}, and the {len(schema.classes)} classes of the label.",
        "The method, its settings and the budget.",
        "That the private data fit the schema, and that there is at least one record.",
    ]
    if schema.public_rows:
        public.append(f"The number of rows: {schema.public_rows}.")
    elif budget.adjacency is Adjacency.REPLACE:
        public.append("The number of rows.")
    return public


def record(schema: Schema) -> str:
    """What one record is."""
    if schema.is_image:
        height, width, channels = schema.image_shape
        return f"a picture of {height} × {width} pixels, {'grey' if channels == 1 else 'in colour'}"
    return f"a row of {len(schema.columns)} columns"


def _described(schema: Schema) -> str:
    if schema.is_image:
        return f"a record is {record(schema)}"
    return f"the names of {len(schema.columns)} columns with their bounds and categories"
