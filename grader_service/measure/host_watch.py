"""Whether the host contaminated a block: asked after its windows, and answered before any of its rates is looked at."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

STEP_S = 0.05
"""A wall clock that moved this much against the monotonic one was stepped; one that is slewed moves 0.5 ms a second."""
MOST_STOLEN = 0.10
"""Share of the processor time wanted that the host's own host may withhold."""
_LEAST_WANTED_S = 0.5
"""Processor seconds below which such a share is noise: the kernel counts in hundredths."""
_HERTZ = 100
"""`/proc/stat` counts in `USER_HZ`, which is 100 on every platform that Linux runs NVIDIA's driver on."""


class HostWatch(Protocol):
    """Watches one thing that can contaminate a block. It sees no rate, so no rate can move it."""

    def begin(self) -> None:
        """A block begins."""
        ...

    def contamination(self) -> str | None:
        """The block has ended: why its windows are worth nothing, or None.

        Raises:
            InfrastructureError: the host failed in a way that ends the run.
        """
        ...


class Together:
    """Several watches as one, or none; the first reason stands, and every one of them is asked."""

    def __init__(self, watches: Sequence[HostWatch]) -> None:
        self._watches = tuple(watches)

    def begin(self) -> None:
        """See `HostWatch.begin`."""
        for watch in self._watches:
            watch.begin()

    def contamination(self) -> str | None:
        """See `HostWatch.contamination`."""
        reasons = [watch.contamination() for watch in self._watches]
        return next((reason for reason in reasons if reason is not None), None)


class ClockWatch:
    """Clocks that do not agree: the host slept, or its wall clock was stepped.

    Args:
        wall: seconds of the wall clock.
        monotonic: seconds of the clock that windows are timed with; stands still while the host sleeps.
        boot: the same clock, going on while the host sleeps.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        boot: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._boot = boot
        self._began = (0.0, 0.0)

    def begin(self) -> None:
        """See `HostWatch.begin`."""
        self._began = self._offsets()

    def contamination(self) -> str | None:
        """See `HostWatch.contamination`."""
        slept, stepped = (now - then for now, then in zip(self._offsets(), self._began, strict=True))
        if slept > STEP_S:
            return f"the host slept for {slept:.1f} s"
        if abs(stepped) > STEP_S:
            return f"the wall clock was stepped by {stepped:+.3f} s"
        return None

    def _offsets(self) -> tuple[float, float]:
        monotonic = self._monotonic()
        boot, wall = self._boot(), self._wall()
        return boot - monotonic, wall - boot


class StealWatch:
    """Processor time that the hypervisor gave to others while the arms wanted it.

    Args:
        cpus: numbers of the processors that the arms run on.
        read: the text of `/proc/stat`.
    """

    def __init__(self, cpus: Sequence[int], read: Callable[[], str] = lambda: Path("/proc/stat").read_text()) -> None:
        self._cpus = tuple(cpus)
        self._read = read
        self._began = (0, 0)

    def begin(self) -> None:
        """See `HostWatch.begin`."""
        self._began = self._ticks()

    def contamination(self) -> str | None:
        """See `HostWatch.contamination`."""
        busy, stolen = (now - then for now, then in zip(self._ticks(), self._began, strict=True))
        wanted = busy + stolen
        if wanted < _LEAST_WANTED_S * _HERTZ or stolen <= MOST_STOLEN * wanted:
            return None
        return f"the hypervisor withheld {stolen / wanted:.0%} of the processor time (steal)"

    def _ticks(self) -> tuple[int, int]:
        """Ticks of the arms' processors so far: busy, stolen."""
        busy, stolen, _ = processor_ticks(self._cpus, self._read())
        return busy, stolen


def processor_ticks(cpus: Sequence[int], text: str) -> tuple[int, int, int]:
    """Ticks so far of these processors together, by the text of `/proc/stat`: busy, stolen, all."""
    names = frozenset(f"cpu{number}" for number in cpus)
    busy = stolen = total = 0
    for line in text.splitlines():
        name, *fields = line.split()
        if name in names:
            ticks = [int(field) for field in fields[:8]]
            user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
            busy += user + nice + system + irq + softirq
            stolen += steal
            total += sum(ticks)
    return busy, stolen, total
