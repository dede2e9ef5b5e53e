"""Draws batches from a built pipeline the way DALI's own iterators do, so that its queue stays as full as theirs."""

from collections.abc import Callable
from typing import Any


class Batches:
    """One pipeline's batches, in order.

    `Pipeline.run` holds a batch until the next call; what is done with it meanwhile keeps its buffers from being filled
    again. Here they go back as soon as the batch has been looked at.
    """

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        pipe.schedule_run()  # the first call fills the whole queue

    def take(self, look: Callable[[Any], Any] | None = None) -> Any:
        """Draws one batch, and returns what `look` says, which sees it while its memory is ours."""
        outputs = self._pipe.share_outputs()
        found = None if look is None else look(outputs)
        self._pipe.release_outputs()
        self._pipe.schedule_run()
        return found


def draw(batches: Batches, count: int, device: str) -> None:
    """Draws batches; on `cuda` until the GPU has made them."""
    for _ in range(count):
        batches.take()
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
