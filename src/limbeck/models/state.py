"""A saved generator, apart from the networks, so that a bundle is read without JAX."""

import dataclasses
from typing import Any

from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class GeneratorState:
    """A generator as plain data: what `limbeck.models.sampling` needs to draw records.

    `config` is plain JSON, `arrays` are its weights by name.
    """

    config: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def __post_init__(self) -> None:
        for name, array in self.arrays.items():
            if array.dtype.kind not in "biuf":
                raise TypeError(f"a generator consists of numbers, but '{name}' does not")
