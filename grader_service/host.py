"""What this host is: cores, memory, GPUs; read once per run and recorded in the verdict."""

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver's management library names it."""

    index: int
    model: str
    uuid: str
    driver: str
    memory_mib: int

    def facts(self) -> dict[str, object]:
        """For the verdict."""
        return {"model": self.model, "uuid": self.uuid, "driver": self.driver, "memory_mib": self.memory_mib}


def find_gpus() -> list[Gpu]:
    """Every GPU that NVML lists; empty without a driver."""
    try:
        import pynvml  # noqa: PLC0415 - an optional dependency: hosts without GPUs go without it
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            found.append(
                Gpu(
                    index,
                    _text(pynvml.nvmlDeviceGetName(handle)),
                    _text(pynvml.nvmlDeviceGetUUID(handle)),
                    driver,
                    int(pynvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20,
                )
            )
    except pynvml.NVMLError:
        return []
    else:
        return found
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def usable_cpus(most: int) -> tuple[int, ...]:
    """Numbers of the first `most` CPUs that this process may use; every arm is pinned to the same."""
    return tuple(sorted(os.sched_getaffinity(0))[:most])


def total_memory_mib() -> int:
    """RAM of the host, MiB."""
    return int(psutil.virtual_memory().total) >> 20


def host_facts() -> dict[str, object]:
    """For the verdict: CPU model, cores, memory, kernel. No host name: a verdict is shown to learners."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": total_memory_mib(),
        "kernel": platform.release(),
    }


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()[:100]
    return platform.machine()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
