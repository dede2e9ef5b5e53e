"""The learner's DALI side where its graph cannot be carried: their factory, driven batch by batch.

Nothing here is believed: this code shares its process with the learner's. The host counts pixels that arrive, by its
own clock, of images that did not exist for this process before.
"""

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import delivery
from ..channel import Link
from .loader_arm import ArmProblem

FACTORY = "build_dali_iterator"


class DaliArm:
    """An endless stream of batches from what `build_dali_iterator(dataset_dir, batch_size)` returns."""

    def __init__(self, factory: Callable[[str, int], Any], batch_size: int) -> None:
        self._factory = factory
        self._batch_size = batch_size
        self._folder = ""
        self._source: Any = None
        self._epoch: Iterator[Any] | None = None
        self._packer: delivery.Packer | None = None

    def prepare(self, folder: str, drain: int) -> dict[str, Any]:
        """Builds the iterator, draws at most `drain` batches of its epoch and describes the first one.

        Raises:
            ArmProblem: the factory returned something else than batches.
        """
        self.build(folder)
        images = delivery.find_images(self._next())
        self._packer = delivery.Packer(images)
        answer = {
            "type": type(self._source).__name__[:100],
            "shape": self._packer.shape[:16],
            "dtype": self._packer.dtype[:60],
            "device": "cuda" if images.is_cuda else "cpu",
        }
        # The rest of the epoch, so that the first trial begins with one; an iterator without end is left where it is.
        rest = () if self._epoch is None else self._epoch  # an iterator may say that it has no length
        if sum(1 for _ in itertools.islice(rest, drain)) < drain:
            self._epoch = None
        return answer

    def build(self, folder: str) -> None:
        """Calls the factory on this folder; what it built before is dropped first."""
        self._source = self._epoch = None
        self._folder = folder
        source = self._factory(folder, self._batch_size)
        if not (hasattr(source, "__iter__") or hasattr(source, "__next__") or hasattr(source, "run")):
            raise ArmProblem(f"{FACTORY} returned {type(source).__name__}; expected something that yields batches")
        if getattr(source, "_auto_reset", None) == "yes":
            # A reset at the end of an epoch reads ahead at once: images that are exchanged before they are delivered.
            source._auto_reset = "no"
        self._source = source

    def deliver(self, link: Link, batches: int) -> None:
        """Sends this many batches to the host."""
        self._packer = delivery.deliver(link, self._endless(), batches, self._packer)

    def _endless(self) -> Iterator[Any]:
        while True:
            yield self._next()

    def _next(self) -> Any:
        """The next batch; at the end of an epoch the iterator is started again, or built again if it cannot be."""
        for attempt in ("go on", "start again", "reset", "build again"):
            if attempt == "build again":
                self.build(self._folder)
            elif attempt == "reset" and hasattr(self._source, "reset"):
                self._source.reset()
            if self._epoch is None:
                self._epoch = self._begin()
            try:
                return next(self._epoch)
            except StopIteration:
                self._epoch = None
        raise ArmProblem(f"what {FACTORY} returned yields no batch")

    def _begin(self) -> Iterator[Any]:
        core = sys.modules.get("nvidia.dali.pipeline")
        if core is not None and isinstance(self._source, core.Pipeline):
            return _runs(self._source)
        return iter(self._source) if hasattr(self._source, "__iter__") else self._source


def _runs(pipe: Any) -> Iterator[Any]:
    """Batches of a bare pipeline; its external source ends an epoch."""
    try:
        while True:
            yield tuple(pipe.run())
    except StopIteration:
        return
