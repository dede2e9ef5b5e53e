"""Several that do something at the same time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

FoundT = TypeVar("FoundT")


def at_once(count: int, work: Callable[[int], FoundT]) -> list[FoundT]:
    """What `work` returns, given its number, in each of this many threads that start together."""
    barrier = threading.Barrier(count)

    def one(number: int) -> FoundT:
        barrier.wait(60)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
