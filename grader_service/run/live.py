"""What a learner's code says while it runs, for whoever waits for the grading."""

import contextlib
import threading
import time
from collections.abc import Iterator

from grader_service.model.progress import one_line
from grader_service.run.progress import Progress, Silent
from grader_service.run.scrubbing import Scrubber
from sandbox.api import Pod

EVERY_S = 1.5


@contextlib.contextmanager
def watched(pod: Pod, scrubber: Scrubber, progress: Progress, limit_s: float) -> Iterator[None]:
    """Tells what the pod's code printed last, every second or two, for as long as the block lasts; nobody: nothing.

    Whatever happens to the looking, the block goes on and ends as if nobody looked: it waits for no engine.

    Args:
        pod: of the learner, whose messages are heard in the block.
        limit_s: seconds that the learner's code may take.
    """
    if isinstance(progress, Silent):
        yield
        return
    since = time.monotonic()
    over = threading.Event()
    telling = threading.Lock()

    def look() -> None:
        with contextlib.suppress(Exception):  # of whoever is told, such as a terminal that was closed
            while not over.wait(EVERY_S):
                line = last_line(scrubber.text(pod.output()))
                with telling:
                    if not over.is_set():
                        progress.running(time.monotonic() - since, limit_s, line)

    threading.Thread(target=look, name="live", daemon=True).start()
    try:
        yield
    finally:
        with telling:
            over.set()


def last_line(written: str) -> str:
    """The last line with something in it, short enough to be shown beside other things."""
    return one_line(next((line for line in reversed(written.splitlines()) if line.strip()), ""))
