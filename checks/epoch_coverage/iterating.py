"""What a DALI iterator of one pipeline delivers per epoch, counted by hand from the numbers that its reader gives.

The rules are those of `nvidia.dali.plugin.base_iterator` in DALI 2.4; `tests/builtin_graph/test_iterating.py` holds
them against the real iterator. Lengths are counted in samples.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Policy = Literal["FILL", "PARTIAL", "DROP"]


@dataclass(frozen=True)
class Settings:
    """How an iterator ends its epochs."""

    policy: Policy
    by_reader: bool
    """Whether `reader_name` is set; otherwise `size` is."""
    padded_claim: bool
    """`last_batch_padded`, which counts only without `reader_name`."""


@dataclass(frozen=True)
class Reader:
    """The reader of the pipeline, on the files that were numbered."""

    files: int
    shards: int
    shard: int
    padded: bool
    stick: bool

    def sizes(self) -> list[int]:
        """Samples of every shard in the first epoch."""
        ends = [self.files * number // self.shards for number in range(self.shards + 1)]
        return [high - low for low, high in itertools.pairwise(ends)]


def epochs(
    stream: Sequence[Sequence[int]], batch: int, settings: Settings, reader: Reader, count: int
) -> list[list[int]]:
    """The samples of the first epochs; fewer than `count` of them where the stream is too short.

    Args:
        stream: numbers of the samples of each batch, as the pipeline gives them.
        batch: samples of a batch.
        settings: of the iterator.
        reader: of the pipeline.
        count: how many epochs.
    """
    taker = _ByReader(batch, settings, reader) if settings.by_reader else _BySize(batch, settings, reader)
    found: list[list[int]] = []
    current: list[int] = []
    batches = iter(stream)
    while len(found) < count:
        if taker.over():
            found.append(current)
            current = []
            taker.reset()
            continue
        numbers = next(batches, None)
        if numbers is None:
            break
        kept = taker.take()
        if kept is None:
            found.append(current)
            current = []
            taker.reset()
        else:
            current += numbers[:kept]
    return found


class _BySize:
    """An iterator that was told `size`."""

    def __init__(self, batch: int, settings: Settings, reader: Reader) -> None:
        self._batch = batch
        self._settings = settings
        self._size = reader.files
        self._counter = 0

    def over(self) -> bool:
        return self._counter >= self._size

    def take(self) -> int | None:
        """How many samples of the next batch are delivered; None when the batch is dropped and the epoch ends."""
        self._counter += self._batch
        if self._settings.policy == "DROP" and self._counter > self._size:
            return None
        if self._settings.policy == "PARTIAL" and self._counter > self._size:
            return self._batch - (self._counter - self._size)
        return self._batch

    def reset(self) -> None:
        fill = self._settings.policy == "FILL" and not self._settings.padded_claim
        self._counter = self._counter % self._size if fill else 0


class _ByReader:
    """An iterator that was told `reader_name`."""

    def __init__(self, batch: int, settings: Settings, reader: Reader) -> None:
        self._batch = batch
        self._policy = settings.policy
        self._reader = reader
        self._initial = reader.sizes()
        self._sizes = list(self._initial)
        self._ahead = [0] * reader.shards
        self._shard = reader.shard % reader.shards
        self._counter = 0
        largest = math.ceil(reader.files / reader.shards)
        if self._policy == "DROP":
            self._size = reader.files // reader.shards
        elif reader.padded:
            self._size = largest
        else:
            self._size = math.ceil(largest / batch) * batch

    def over(self) -> bool:
        return self._counter >= self._size

    def take(self) -> int | None:
        self._counter += self._batch
        if self._policy == "DROP" and self._beyond(self._counter):
            return None
        if self._policy == "PARTIAL":
            left = self._batch - (self._counter - self._initial[self._shard])
            return max(0, min(left, self._batch))
        return self._batch

    def reset(self) -> None:
        filled = self._policy == "FILL" and not self._reader.padded
        if filled:
            self._counter -= min(self._ahead)
            moved = zip(self._ahead, self._sizes, strict=True)
            self._ahead = [ahead + self._counter - size for ahead, size in moved]
            self._counter = min(self._ahead)
        else:
            self._counter = 0
        if not self._reader.stick:
            self._shard = (self._shard + 1) % self._reader.shards
        if filled:
            if not self._reader.stick:
                self._sizes = self._sizes[-1:] + self._sizes[:-1]
            left = max(size - ahead for size, ahead in zip(self._sizes, self._ahead, strict=True))
            self._size = math.ceil(left / self._batch) * self._batch
            if self._size == 0:
                self._ahead = [0] * self._reader.shards
                self._counter = 0
                self._sizes = self._sizes[-1:] + self._sizes[:-1]
                self._size = math.ceil(max(self._sizes) / self._batch) * self._batch

    def _beyond(self, counter: int) -> bool:
        return any(ahead + counter > size for ahead, size in zip(self._ahead, self._sizes, strict=True))
