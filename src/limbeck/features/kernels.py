"""The kernels by name, as a bundle records them and the command line offers them."""

import dataclasses
from typing import Any

from limbeck.errors import UserError
from limbeck.features.base import InnerProductKernel
from limbeck.features.fc_ntk import FCNTK

KERNELS: dict[str, type[FCNTK]] = {
    "fc-ntk": FCNTK,
}


def kernel(name: str, **settings: Any) -> InnerProductKernel:
    """The kernel of that name."""
    if name not in KERNELS:
        raise UserError(f"there are no features '{name}'; choose from: {', '.join(KERNELS)}")
    return KERNELS[name](**settings)


def to_json(name: str, chosen: InnerProductKernel) -> dict[str, Any]:
    """Name and settings; `kernel(**to_json(...))` is the same kernel."""
    assert isinstance(chosen, FCNTK)
    return {"name": name, **dataclasses.asdict(chosen)}
