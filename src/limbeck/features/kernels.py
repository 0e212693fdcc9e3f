"""The kernels by name, as a bundle records them and the command line offers them."""

import dataclasses
from typing import Any

from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, InnerProductKernel
from limbeck.features.bins import Bins, even_knots, number_coordinates
from limbeck.features.empirical_ntk import EmpiricalNTK, empirical_ntk
from limbeck.features.fc_ntk import FCNTK
from limbeck.features.inputs import Inputs
from limbeck.features.perceptual import Perceptual
from limbeck.features.scattering import Scattering
from limbeck.features.whitened import WhitenedScattering

Kernel = InnerProductKernel | FeatureMap

KERNELS: dict[
    str, type[FCNTK | Scattering | WhitenedScattering | EmpiricalNTK | Perceptual | Bins]
] = {
    "fc-ntk": FCNTK,
    "scatter": Scattering,
    "whitened-scatter": WhitenedScattering,
    "e-ntk": EmpiricalNTK,
    "perceptual": Perceptual,
    "bins": Bins,
}


# For numbers of a table, where nothing better is known.
KNOTS = 8


def check(name: str) -> None:
    """Refuse a name that is not in the table."""
    if name not in KERNELS:
        raise UserError(f"features must be one of {', '.join(KERNELS)}, not '{name}'")


def for_schema(name: str, schema: Schema, inputs: Inputs) -> Kernel:
    """The kernel of that name for the records that the schema describes."""
    check(name)
    if name == "fc-ntk":
        return FCNTK(dimension=inputs.dimension)
    if name == "bins":
        if schema.is_image:
            raise UserError("features=bins is for tables; for images use features=scatter")
        numbers = number_coordinates(schema)
        knots = (even_knots(KNOTS),) * len(numbers)
        return Bins(dimension=inputs.dimension, numbers=numbers, knots=knots)
    if not schema.is_image:
        raise UserError(f"features={name} is for images; for tables use fc-ntk or bins")
    if name == "e-ntk":
        return empirical_ntk(schema.image_shape)
    return kernel(name, shape=schema.image_shape)


def kernel(name: str, **settings: Any) -> Kernel:
    """The kernel of that name."""
    check(name)
    return KERNELS[name](**{key: _tuples(value) for key, value in settings.items()})


def _tuples(value: Any) -> Any:
    """Lists as tuples, which JSON does not have."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def to_json(name: str, chosen: Kernel) -> dict[str, Any]:
    """Name and settings; `kernel(**to_json(...))` is the same kernel."""
    assert isinstance(chosen, KERNELS[name])
    return {"name": name, **dataclasses.asdict(chosen)}
