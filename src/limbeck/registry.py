"""Methods, feature maps, evaluators and formats by name: ours, and those of installed packages.

Another package adds one with an entry point of the group "limbeck.methods", "limbeck.features",
"limbeck.evaluators" or "limbeck.formats".
"""

import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from limbeck.errors import UserError, suggestion


def registered(group: str, built_in: Mapping[str, str]) -> dict[str, str]:
    """Names and "module:attribute" of ours, and of the entry points of the group "limbeck.`group`".

    A name of ours cannot be taken by another package. Ours come first.
    """
    found = importlib.metadata.entry_points(group=f"limbeck.{group}")
    others = {point.name: point.value for point in found if point.name not in built_in}
    return {**built_in, **others}


def load(group: str, built_in: Mapping[str, str], name: str) -> Any:
    """The object that is registered under a name.

    Raises
    ------
    UserError : there is none of that name.
    """
    places = registered(group, built_in)
    if name not in places:
        kind = group if group == "features" else group.removesuffix("s")
        raise UserError(f"unknown {kind} '{name}'{suggestion(name, places)}")
    return load_place(places[name])


def load_place(place: str) -> Any:
    """The object at "module:attribute"."""
    module, attribute = place.split(":")
    return getattr(importlib.import_module(module), attribute)
