"""Writes the held-out JPEGs of a plan, in the background if wanted: fresh for each run, nothing in them seen before."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from grader_service.held_out.drawing import write_jpeg
from grader_service.held_out.plan import ShardPlan, marks

_CLASSES = 4
_BUNCH = 8
THREADS = 4
"""Half of the work holds the interpreter's lock; more threads hand it around, and take longer all together."""


class PendingShard:
    """Images of a plan that threads are writing to class folders; close it, or use it in a `with`.

    Args:
        plan: which images; `codes` and audits go by their place in it.
        folder: must exist.
        part: places of the plan to make; all if absent. Parts have the same file names, so that one can be exchanged
            for another, and are told apart by colour.

    Raises:
        OSError: the folder is not there or cannot be written.
    """

    def __init__(self, plan: ShardPlan, folder: Path, *, part: range | None = None) -> None:
        part = part or range(len(plan.sizes))
        self._names = names(len(part))
        colours = marks(plan)

        def write(places: range) -> None:
            for place in places:
                index = part[place]
                path = folder / self._names[place]
                write_jpeg(path, plan.seed, index, plan.sizes[index], colours[index])
                path.chmod(0o644)

        for name in dict.fromkeys(Path(name).parent for name in self._names):
            (folder / name).mkdir(exist_ok=True)
            (folder / name).chmod(0o755)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="held-out")
        bunches = [range(start, min(start + _BUNCH, len(part))) for start in range(0, len(part), _BUNCH)]
        self._parts: list[Future[None]] = [self._pool.submit(write, bunch) for bunch in bunches]

    def names(self) -> list[str]:
        """Waits for the last image; paths relative to the folder, in order.

        Raises:
            OSError: an image could not be written.
            concurrent.futures.CancelledError: it was closed before.
        """
        try:
            for part in self._parts:
                part.result()
        finally:
            self.close()
        return list(self._names)

    def close(self) -> None:
        """Stops making images and waits for those that are being drawn; the folder keeps what was written."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def names(images: int) -> list[str]:
    """Relative paths of a shard of that many images, in order."""
    return [f"class_{index % _CLASSES}/{index:05d}.jpg" for index in range(images)]
