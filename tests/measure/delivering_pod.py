"""A pod in memory that delivers images as learner code would; each behaviour is one that some learner might write."""

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from sandbox.api import Ending
from sandbox.frames import Message

BATCH = 16
Batches = Callable[[Path, int], Iterator[np.ndarray]]


class DeliveringPod:
    """Implements `sandbox.api.Pod`; the behaviour gets the folder and the number of batches, and yields uint8 arrays.

    It runs only while the pod is not frozen, as the host's clock sees it: what it reads is what has been shown.
    """

    def __init__(self, root: Path, behaviour: Batches) -> None:
        self.root = root
        self.running = False
        self.rejected: str | None = None
        self.extra: list[Message] = []
        self._behaviour = behaviour
        self._messages: Iterator[Message] = iter(())

    def send(self, body, blob=b"", *, timeout_s=30.0):
        assert not self.running, "images must be exchanged, and the request sent, while the pod is frozen"
        self._messages = self._answers(Path(body["folder"] or self.root / "live"), body["batches"])

    def receive(self, timeout_s):
        assert self.running
        if self.rejected is not None:
            return Ending.PROTOCOL_VIOLATION
        return next(self._messages, Ending.TIMED_OUT)

    def pause(self):
        self.running = False

    def resume(self):
        self.running = True

    def reject(self, why):
        self.rejected = why
        return Ending.PROTOCOL_VIOLATION

    def _answers(self, folder, batches):
        for batch in self._behaviour(folder, batches):
            yield Message({"kind": "images", "shape": list(batch.shape)}, np.ascontiguousarray(batch).tobytes())
        yield Message({"kind": "delivered"}, b"")
        yield from self.extra


def decoded(path: Path, scale: int = 1) -> np.ndarray:
    """The whole image, or a decode at 1/scale enlarged to its size."""
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        size = image.size
        if scale > 1:
            image.draft("RGB", (size[0] // scale, size[1] // scale))
        return np.asarray(image.convert("RGB").resize(size, Image.Resampling.BICUBIC))


class Honest:
    """Decodes every file of the folder once an epoch, and goes on where the last window ended.

    Args:
        scale: 2 to decode at half resolution.
        queue: images that are decoded ahead, as a pipeline's prefetch queue does.
        seconds: what decoding one image costs, beside its real cost.
    """

    def __init__(self, *, scale: int = 1, queue: int = 0, seconds: float = 0.0) -> None:
        self._scale, self._queue, self._seconds = scale, queue, seconds
        self._ahead: list[np.ndarray] = []
        self._place = 0

    def __call__(self, folder, batches):
        for _ in range(batches):
            yield np.stack([self._next(folder) for _ in range(BATCH)])

    def _next(self, folder):
        while len(self._ahead) <= self._queue:
            paths = sorted(folder.rglob("*.jpg"))
            self._ahead.append(decoded(paths[self._place % len(paths)], self._scale))
            self._place += 1
            time.sleep(self._seconds)
        return self._ahead.pop(0)
