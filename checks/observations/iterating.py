"""What a DALI iterator of one pipeline delivers per epoch, counted by hand from the numbers that its reader gives.

The rules are those of `nvidia.dali.plugin.base_iterator` in DALI 2.4; `tests/checks/graphs/test_iterating.py` holds
them against the real iterator. Lengths are counted in samples.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Settings(NamedTuple):
    """How an iterator ends its epochs."""

    policy: str
    """`FILL`, `PARTIAL` or `DROP`."""
    by_reader: bool
    """Whether `reader_name` is set; otherwise `size` is."""
    padded_claim: bool
    """`last_batch_padded`, which counts only without `reader_name`."""


class Reader(NamedTuple):
    """The reader of the pipeline, on the files that were numbered."""

    files: int
    shards: int
    shard: int
    padded: bool
    stick: bool

    def size(self, shard: int) -> int:
        """Samples of a shard in the first epoch."""
        return self.files * (shard + 1) // self.shards - self.files * shard // self.shards


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
    taker = (_ByReader if settings.by_reader else _BySize)(batch, settings, reader)
    found: list[list[int]] = []
    current: list[int] = []
    batches = iter(stream)
    while len(found) < count:
        if not taker.over():
            numbers = next(batches, None)
            if numbers is None:
                break
            kept = taker.take()
            if kept is not None:
                current += numbers[:kept]
                continue
        found.append(current)
        current = []
        taker.reset()
    return found


class _BySize:
    """An iterator that was told `size`: its files are one shard."""

    def __init__(self, batch: int, settings: Settings, reader: Reader) -> None:
        self._batch, self._policy = batch, settings.policy
        self._filled = self._policy == "FILL" and not settings.padded_claim
        self._counter, self._size = 0, reader.files
        self._initial = self._sizes = [reader.files]
        self._ahead, self._shard = [0], 0

    def over(self) -> bool:
        return self._counter >= self._size

    def take(self) -> int | None:
        """How many samples of the next batch are delivered; None when the batch is dropped and the epoch ends."""
        self._counter += self._batch
        if self._policy == "DROP" and any(left < self._counter for left in self._left()):
            return None
        if self._policy == "PARTIAL":
            return max(0, self._batch - max(0, self._counter - self._initial[self._shard]))
        return self._batch

    def reset(self) -> None:
        self._counter = self._counter % self._size if self._filled else 0

    def _left(self) -> list[int]:
        """Of every shard, the samples that the epochs before have not read ahead."""
        return [size - ahead for size, ahead in zip(self._sizes, self._ahead, strict=True)]


class _ByReader(_BySize):
    """An iterator that was told `reader_name`."""

    def __init__(self, batch: int, settings: Settings, reader: Reader) -> None:
        super().__init__(batch, settings, reader)
        self._filled = self._policy == "FILL" and not reader.padded
        self._initial = self._sizes = [reader.size(shard) for shard in range(reader.shards)]
        self._ahead, self._shard = [0] * reader.shards, reader.shard % reader.shards
        self._stick = reader.stick
        if self._policy == "DROP":
            self._size = reader.files // reader.shards
        else:
            largest = math.ceil(reader.files / reader.shards)
            self._size = largest if reader.padded else self._whole(largest)

    def reset(self) -> None:
        if not self._stick:
            self._shard = (self._shard + 1) % len(self._sizes)
        if not self._filled:
            self._counter = 0
            return
        self._counter -= min(self._ahead)
        self._ahead = [self._counter - left for left in self._left()]
        self._counter = min(self._ahead)
        if not self._stick:
            self._rotate()
        self._size = self._whole(max(self._left()))
        if self._size == 0:
            self._counter, self._ahead = 0, [0] * len(self._sizes)
            self._rotate()
            self._size = self._whole(max(self._sizes))

    def _whole(self, samples: int) -> int:
        """So many samples in whole batches."""
        return math.ceil(samples / self._batch) * self._batch

    def _rotate(self) -> None:
        self._sizes = self._sizes[-1:] + self._sizes[:-1]
