"""Draws batches from a built pipeline the way DALI's own iterators do, so that its queue stays as full as theirs."""

import time
from collections.abc import Callable
from typing import Any

from ..channel import Link
from ..graph import model


class Batches:
    """One pipeline's batches, in order.

    `Pipeline.run` holds a batch until the next call; what is done with it meanwhile keeps its buffers from being filled
    again. Here they go back as soon as the batch has been looked at.
    """

    def __init__(self, pipe: Any, size: int, device: str) -> None:
        self._pipe, self._size, self._device = pipe, size, device
        pipe.schedule_run()  # the first call fills the whole queue

    def take(self, look: Callable[[Any], Any] | None = None) -> Any:
        """Draws one batch, and returns what `look` says, which sees it while its memory is ours."""
        outputs = self._pipe.share_outputs()
        found = None if look is None else look(outputs)
        self._pipe.release_outputs()
        self._pipe.schedule_run()
        return found

    def draw(self, count: int) -> None:
        """Draws so many batches; on `cuda` it waits until the GPU has made them."""
        for _ in range(count):
            self.take()
        if self._device == "cuda":
            import torch

            torch.cuda.synchronize()

    def window(self, link: Link, request: dict[str, Any]) -> None:
        """Answers a request `window` with its two marks, once what it discards was drawn."""
        self.draw(request["discard"])
        started = time.monotonic()
        link.send("mark")
        self.draw(request["batches"])
        seconds = time.monotonic() - started
        link.send("window_done", images=self._size * request["batches"], seconds=seconds)


def build(graph: model.Graph) -> Any:
    """The running pipeline, with the executor that the graph names.

    Left to itself `deserialize` takes the synchronous one, which prefetches nothing and refuses separate queues.
    """
    from nvidia.dali import Pipeline

    flags = graph.executor or 0
    cpu, gpu = graph.prefetch
    return Pipeline.deserialize(
        model.write(graph),
        exec_pipelined=bool(flags & model.PIPELINED),
        exec_async=bool(flags & model.ASYNC),
        exec_dynamic=bool(flags & model.DYNAMIC),
        prefetch_queue_depth={"cpu": cpu, "gpu": gpu} if flags & model.SEPARATED else max(cpu, gpu),
    )
