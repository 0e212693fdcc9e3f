"""What there is. Adding a method is a row here, its module, its tests, its page, the changelog."""

import importlib
from dataclasses import dataclass
from typing import Any

from limbeck.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the table; `config` is where its configuration class is, loaded when used."""

    config: str
    private: bool
    summary: str
    guarantee: str
    paper: str
    docs: str

    def load(self) -> Any:
        """The configuration class."""
        module, name = self.config.split(":")
        return getattr(importlib.import_module(module), name)


METHODS = {
    "readout": Method(
        config="limbeck.distill.readout:Readout",
        private=True,
        summary="a private readout of fixed features, then points that have it",
        guarantee="(ε, δ)-DP, composition of Gaussian draws over all records",
        paper="ours",
        docs="docs/readout.md",
    ),
    "dp-kip": Method(
        config="limbeck.distill.dp_kip:DPKIP",
        private=True,
        summary="kernel inducing points by noisy gradients of clipped records",
        guarantee="(ε, δ)-DP, Poisson-sampled Gaussian draws",
        paper="Vinaroz & Park, Differentially Private Kernel Inducing Points, TMLR 2024",
        docs="docs/dp_kip.md",
    ),
    "kip": Method(
        config="limbeck.distill.kip:KIP",
        private=False,
        summary="kernel inducing points, the baseline without privacy",
        guarantee="none",
        paper="Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021",
        docs="docs/dp_kip.md",
    ),
}


def find(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UserError(f"there is no method '{name}'; choose from: {', '.join(METHODS)}")
    return METHODS[name]
