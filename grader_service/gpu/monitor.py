"""What a steward must be able to ask a GPU; NVML answers it on a real host, `memory` in tests and simulations."""

from dataclasses import dataclass
from typing import Protocol

from grader_service.errors import InfrastructureError


class GpuGone(InfrastructureError):
    """The GPU does not answer any more: fallen off the bus, reset, or re-partitioned."""


@dataclass(frozen=True)
class GpuSnapshot:
    """One look at a GPU."""

    processes: tuple[int, ...]
    """Process ids with a context on it, of every user and container."""
    memory_used_mib: int
    memory_total_mib: int
    recovery_action: str | None
    """What the driver wants done before the GPU is used again, such as `reset`; None when nothing."""
    throttled: str | None
    """Why clocks are held down beyond what idling does; None when they are not."""


class GpuMonitor(Protocol):
    """Watches one GPU."""

    uuid: str

    def snapshot(self) -> GpuSnapshot:
        """The GPU now.

        Raises:
            GpuGone: it does not answer.
        """
        ...

    def drain_xids(self) -> tuple[int, ...]:
        """Xid numbers that the driver reported since the last call, in order."""
        ...

    def close(self) -> None:
        """Lets go of the driver."""
        ...
