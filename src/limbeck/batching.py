"""Many records in blocks of one fixed shape, on all cores.

One compiled shape means that nothing is compiled again, and that what is computed of a record does
not depend on where it stands or on how many others there are.
"""

import functools
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

CORES = os.cpu_count() or 1


def padded(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The rows of `array`, and rows of zeros up to `size`.

    Examples
    --------
    >>> padded(np.array([4, 7]), 3).tolist()
    [4, 7, 0]
    """
    if len(array) == size:
        return array
    whole = np.zeros((size, *array.shape[1:]), array.dtype)
    whole[: len(array)] = array
    return whole


def in_blocks(function: Callable[..., Any], size: int, *arrays: NDArray[Any]) -> NDArray[Any]:
    """`function` of the rows of `arrays`, row by row, called with blocks of exactly `size` rows.

    The last block is padded with zeros, and its result is cut. Blocks run on all cores.
    """

    def one(start: int) -> NDArray[Any]:
        parts = [array[start : start + size] for array in arrays]
        return np.asarray(function(*(padded(part, size) for part in parts)))[: len(parts[0])]

    starts = range(0, max(len(arrays[0]), 1), size)
    return np.concatenate(list(side_by_side(one, starts)))


def side_by_side(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`function` of every item, in order, in as many threads as there are cores.

    Few items are in memory at a time. Steps that fit the caches are too small to be shared out by
    a compiler or a linear algebra library, so whole blocks are.
    """
    wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # it belongs to the thread

    def one(item: Item) -> Result:
        with jax.enable_x64(wide):
            return jax.block_until_ready(function(item))

    items = iter(items)
    first = list(itertools.islice(items, 2))
    if len(first) < 2:  # one item may use all cores itself
        yield from map(function, first)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(CORES)
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            for item in itertools.chain(first, items):
                waiting.append(pool.submit(one, item))
                if len(waiting) > 2 * CORES:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@functools.cache
def _libraries() -> ThreadpoolController:
    """The linear algebra libraries in this process, each of which has threads of its own."""
    return ThreadpoolController()
