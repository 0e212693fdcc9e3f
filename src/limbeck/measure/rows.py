"""Private records in parts, and the sum of contributions over them.

`Rows` is what the methods hold of private data. They can derive other rows from it, record by
record, and hand it to `Run.sum`; they cannot read it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limbeck.batching import padded, side_by_side
from limbeck.data.private import PrivateData
from limbeck.data.schema import HasSchema
from limbeck.privacy.bounded import Contribution
from limbeck.privacy.ledger import NoCopy
from limbeck.privacy.run import Run
from limbeck.privacy.sampling import Sample

Part = tuple[NDArray[Any], NDArray[np.int32]]


class Block(NamedTuple):
    """Some records, in a fixed number; private. `mask` is false on padding.

    `values` are encoded records in [0, 1], or what was derived from them; `labels` are positions
    of classes.
    """

    values: NDArray[Any]
    labels: NDArray[np.int32]
    mask: NDArray[np.bool_]


class Rows(NoCopy):
    """Private records, one part after the other.

    Parts are read from the source for every sum, in bounded memory, unless they are kept.
    """

    def __init__(
        self, parts: Callable[[], Iterable[Part]], shape: tuple[int, ...], dtype: type[np.generic]
    ) -> None:
        self._parts, self._shape, self._dtype = parts, shape, dtype

    def parts(self) -> Iterable[Part]:
        """The records themselves; for `measure` alone."""
        return self._parts()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def kept(self) -> "Rows":
        """The same records, read once and held in memory."""
        return self.derived(lambda values: values, self._shape, self._dtype)

    def derived(
        self,
        function: Callable[[NDArray[Any]], NDArray[Any]],
        shape: tuple[int, ...],
        dtype: type[np.generic],
    ) -> "Rows":
        """Rows of another shape, held in memory.

        `function` maps values [n, ...] to values [n, *shape], each row by itself.
        """
        parts = [(function(values).astype(dtype), labels) for values, labels in self.parts()]
        return Rows(lambda: parts, shape, dtype)

    def total(
        self, contribution: Contribution[Any, Block], public: Any, sample: Sample
    ) -> NDArray[np.int64] | NDArray[np.float64]:
        """The sum over a sample of the records of `contribution(public, ·)`.

        Called by `Run.sum`, which adds the noise. Sums of exact contributions are integers and do
        not depend on the order of the records, the size of blocks or the number of threads.
        """
        total: Any = 0
        blocks = self._blocks(contribution.block, sample)
        for part in side_by_side(lambda block: contribution(public, block), blocks):
            total = total + (part.astype(np.int64) if contribution.exact else part)
        return np.asarray(total)

    def _blocks(self, size: int, sample: Sample) -> Iterator[Block]:
        """The sampled records in blocks of `size`; without any record, one block of padding."""
        empty = True
        for values, labels in self.parts():
            chosen = sample.of(len(labels))
            count = len(labels) if chosen is None else len(chosen)
            for start in range(0, count, size):
                taken: Any = slice(start, start + size)
                if chosen is not None:
                    taken = chosen[taken]
                yield _block(values[taken], labels[taken], size)
                empty = False
        if empty:
            nothing = np.zeros((0, *self._shape), self._dtype)
            yield _block(nothing, np.zeros(0, np.int32), size)


def _block(values: NDArray[Any], labels: NDArray[np.int32], size: int) -> Block:
    return Block(padded(values, size), padded(labels, size), np.arange(size) < len(labels))


def read(private: HasSchema, run: Run, stage: str = "read") -> Rows:
    """The encoded records, read from their source each time that they are summed over."""
    if not isinstance(private, PrivateData):
        raise TypeError("records are read from PrivateData; open them with limbeck.open")

    def parts() -> Iterator[Part]:
        done, rows = 0, private.schema.public_rows
        for x, labels in private.reveal():
            run.progress(stage, done if rows else 0, rows or 0)  # the count may be private
            # One memory layout, hence one rounding of sums along a row.
            yield np.ascontiguousarray(x), labels
            done += len(labels)

    return Rows(parts, (private.schema.width,), np.float32)
