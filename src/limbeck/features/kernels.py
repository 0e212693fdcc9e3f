"""The kernels by name, as a bundle records them and the command line offers them."""

import dataclasses
from typing import Any

from limbeck.errors import UserError
from limbeck.features.base import InnerProductKernel
from limbeck.features.fc_ntk import FCNTK

KERNELS: dict[str, type[FCNTK]] = {
    "fc-ntk": FCNTK,
}


def check(name: str) -> None:
    """Refuse a name that is not in the table."""
    if name not in KERNELS:
        raise UserError(f"--features must be one of {', '.join(KERNELS)}, not '{name}'")


def kernel(name: str, **settings: Any) -> InnerProductKernel:
    """The kernel of that name."""
    check(name)
    return KERNELS[name](**settings)


def to_json(name: str, chosen: InnerProductKernel) -> dict[str, Any]:
    """Name and settings; `kernel(**to_json(...))` is the same kernel."""
    assert isinstance(chosen, FCNTK)
    return {"name": name, **dataclasses.asdict(chosen)}
