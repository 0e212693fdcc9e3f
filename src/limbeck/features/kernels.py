"""Kernels and feature maps by name, as a bundle records them and the command line offers them."""

import dataclasses
from typing import Any

from limbeck import registry
from limbeck.data.schema import Schema
from limbeck.errors import UserError
from limbeck.features.base import FeatureMap, InnerProductKernel
from limbeck.features.inputs import Inputs

Kernel = InnerProductKernel | FeatureMap

BUILT_IN = {
    "fc-ntk": "limbeck.features.fc_ntk:FCNTK",
    "scatter": "limbeck.features.scattering:Scattering",
    "whitened-scatter": "limbeck.features.whitened:WhitenedScattering",
    "e-ntk": "limbeck.features.empirical_ntk:EmpiricalNTK",
    "perceptual": "limbeck.features.perceptual:Perceptual",
    "bins": "limbeck.features.bins:Bins",
}


def find(name: str) -> type[Kernel]:
    """The class of that name."""
    kernel = registry.load("features", BUILT_IN, name)
    if not (isinstance(kernel, type) and issubclass(kernel, Kernel)):
        raise UserError(f"features '{name}' is not a subclass of FeatureMap or InnerProductKernel")
    return kernel


def for_schema(name: str, schema: Schema, inputs: Inputs) -> Kernel:
    """The kernel of that name for the records that the schema describes."""
    kernel = find(name)
    described = "images" if schema.is_image else "tables"
    if kernel.takes not in ("both", described):
        raise UserError(f"features={name} is for {kernel.takes}, and the schema is of {described}")
    return kernel.for_schema(schema, inputs)


def kernel(name: str, **settings: Any) -> Kernel:
    """The kernel of that name with these settings."""
    return find(name)(**{key: _tuples(value) for key, value in settings.items()})


def _tuples(value: Any) -> Any:
    """Lists as tuples, which JSON does not have."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def to_json(name: str, chosen: Kernel) -> dict[str, Any]:
    """Name and settings; `kernel(**to_json(...))` is the same kernel."""
    assert isinstance(chosen, find(name))
    return {"name": name, **dataclasses.asdict(chosen)}  # type: ignore[call-overload]
