"""Whether the GPU contaminated a block: clocks held down, a process that is not ours, a fault of the hardware."""

import time
from collections.abc import Callable

import structlog

from grader_service.host.gpu.monitor import GpuGone
from grader_service.host.gpu.poll import GpuPoll
from grader_service.host.gpu.xid import Blame, blame, explain

log = structlog.get_logger(__name__)


class GpuWatch:
    """Implements `HostWatch` for the GPU that the arms use.

    Whoever has a process on the GPU when the first block begins is known: by then every arm has run. A new process of
    a known pod is known too; any other one is foreign for as long as it stays.

    An Xid that a program caused contaminates nothing. Else a learner could discard blocks, and get a run that is never
    decided, by writing to an illegal address now and then.

    Args:
        note: hears what staff should know of, such as an Xid.
    """

    def __init__(self, poll: GpuPoll, note: Callable[[str], None]) -> None:
        self._poll = poll
        self._note = note
        self._known: frozenset[str] | None = None
        self._noted: set[int] = set()
        self._began = 0.0

    def begin(self) -> None:
        """See `HostWatch.begin`.

        Raises:
            GpuGone: the GPU does not answer.
        """
        self._heed_xids("before a block")
        if self._known is None:
            self._known = frozenset(self._poll.look().homes.values())
        self._began = time.monotonic()

    def contamination(self) -> str | None:
        """See `HostWatch.contamination`.

        Raises:
            GpuGone: the GPU does not answer, or waits for a reset: no later block could be trusted.
        """
        faults = self._heed_xids("in a block")
        self._poll.look()
        action = self._poll.monitor.snapshot().recovery_action
        if action is not None:
            raise GpuGone(f"the driver asks for {action}")
        if faults:
            return f"the GPU reported {faults[0]}"
        samples = self._poll.between(self._began, time.monotonic())
        throttled = next((sample.use.throttled for sample in samples if sample.use.throttled is not None), None)
        if throttled is not None:
            return f"the GPU's clocks were held down: {throttled}"
        known = self._known or frozenset()
        foreign = {pid for sample in samples for pid, home in sample.homes.items() if home not in known}
        if foreign:
            # Process ids of the host are for its operator, whose log has them; a verdict is read by others too.
            if new := sorted(foreign - self._noted):
                log.warning("foreign_gpu_processes", pids=new[:50])
                self._note(f"foreign processes used the GPU: {len(new)} that had not been seen before")
            self._noted |= foreign
            return "a process that is not of this run used the GPU"
        return None

    def _heed_xids(self, when: str) -> list[str]:
        """Notes what the driver reported; returns what the hardware is to blame for."""
        xids = self._poll.monitor.drain_xids()
        for xid in xids:
            self._note(f"{when}: {explain(xid)}")
        return [explain(xid) for xid in xids if blame(xid) is Blame.HARDWARE]
