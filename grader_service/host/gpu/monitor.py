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
    recovery_action: str | None
    """What the driver wants done before the GPU is used again, such as `reset`; None when nothing."""


@dataclass(frozen=True)
class Utilisation:
    """A light look at a GPU, cheap enough to be taken ten times a second."""

    sm_percent: float | None
    """Share of the time in which a kernel ran; None where the driver does not say, as with MIG."""
    jpg_percent: float | None
    """The same of the JPEG engine; None where the GPU has none."""
    memory_used_mib: int
    processes: tuple[int, ...]
    throttled: str | None
    """Why clocks are held down beyond what idling does; None when they are not."""
    period_s: float
    """For how long before the look the driver averaged: a look this soon after a change still shows what was before."""


class GpuMonitor(Protocol):
    """Watches one GPU; may be asked from several threads."""

    uuid: str

    def snapshot(self) -> GpuSnapshot:
        """The GPU now.

        Raises:
            GpuGone: it does not answer.
        """
        ...

    def utilisation(self) -> Utilisation:
        """How busy the GPU is now.

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
