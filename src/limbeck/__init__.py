"""Limbeck: a private data set in, a tiny or synthetic one out, under differential privacy.

import limbeck as lb
private = lb.open("patients.parquet", schema="patients.toml")
bundle = lb.Readout(per_class=10).fit(private, lb.Budget(epsilon=1.0, delta=1e-5))
bundle.save("release/")
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limbeck.data.private import PrivateData as PrivateData
    from limbeck.data.private import open_private as open
    from limbeck.data.schema import Schema as Schema
    from limbeck.distill.dp_kip import DPKIP as DPKIP
    from limbeck.distill.kip import KIP as KIP
    from limbeck.distill.readout import Readout as Readout
    from limbeck.errors import UserError as UserError
    from limbeck.generate.g_pate import GPATE as GPATE
    from limbeck.generate.moment_matching import DPHP as DPHP
    from limbeck.generate.moment_matching import DPMERF as DPMERF
    from limbeck.generate.moment_matching import DPNTK as DPNTK
    from limbeck.privacy.budget import Adjacency as Adjacency
    from limbeck.privacy.budget import Budget as Budget
    from limbeck.release.bundle import Bundle as Bundle
    from limbeck.release.bundle import load as load

# Loaded when first used, so that `import limbeck` and the command line start at once.
_PLACES = {
    "Adjacency": "limbeck.privacy.budget:Adjacency",
    "Budget": "limbeck.privacy.budget:Budget",
    "Bundle": "limbeck.release.bundle:Bundle",
    "DPHP": "limbeck.generate.moment_matching:DPHP",
    "DPKIP": "limbeck.distill.dp_kip:DPKIP",
    "DPMERF": "limbeck.generate.moment_matching:DPMERF",
    "DPNTK": "limbeck.generate.moment_matching:DPNTK",
    "GPATE": "limbeck.generate.g_pate:GPATE",
    "KIP": "limbeck.distill.kip:KIP",
    "PrivateData": "limbeck.data.private:PrivateData",
    "Readout": "limbeck.distill.readout:Readout",
    "Schema": "limbeck.data.schema:Schema",
    "UserError": "limbeck.errors:UserError",
    "load": "limbeck.release.bundle:load",
    "open": "limbeck.data.private:open_private",
}

__all__ = [
    "DPHP",
    "DPKIP",
    "DPMERF",
    "DPNTK",
    "GPATE",
    "KIP",
    "Adjacency",
    "Budget",
    "Bundle",
    "PrivateData",
    "Readout",
    "Schema",
    "UserError",
    "load",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'limbeck' has no attribute {name!r}")
    module, attribute = _PLACES[name].split(":")
    return getattr(importlib.import_module(module), attribute)
