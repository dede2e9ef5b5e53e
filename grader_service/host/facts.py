"""What this host is: cores, memory, GPUs; read once per run and recorded in the verdict."""

import contextlib
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Mig:
    """What a device is beside a GPU, when it is an instance of a partitioned one."""

    parent: str
    """UUID of the GPU that it is a part of."""
    profile: str
    """Its size, such as `1g.18gb`: slices of the processors, and memory."""
    index: int
    """Its number among the instances of that GPU; numbers may be missing in between."""
    alone: bool
    """Whether no other compute instance shares its GPU instance, and so its memory and its faults."""
    jpeg_engines: int | None
    """Hardware JPEG decoders that it has a share of; None where the driver does not say."""


@dataclass(frozen=True)
class Gpu:
    """One GPU, or one instance of a partitioned GPU, as the driver's management library names it."""

    index: int
    """Of the GPU, also where this is an instance of it; among those that the driver shows to this process."""
    model: str
    """With the profile where this is an instance: `NVIDIA H200 MIG 1g.18gb`."""
    uuid: str
    driver: str
    memory_mib: int
    mig: Mig | None = None
    minor: int | None = None
    """Of the GPU's device node (`/dev/nvidia0`), the same in every container of the host; None where nobody says it."""

    def facts(self) -> dict[str, object]:
        """For the verdict."""
        facts = {"model": self.model, "uuid": self.uuid, "driver": self.driver, "memory_mib": self.memory_mib}
        return facts if self.mig is None else facts | {"parent": self.mig.parent, "profile": self.mig.profile}


def find_gpus(nvml: Any = None) -> list[Gpu]:
    """Every device that NVML (`nvml`, else pynvml) lists: GPUs, and the instances of a GPU in MIG mode in its place.

    Empty without a driver. A GPU in MIG mode that has no instances can run nothing and is not listed; nor is one that
    does not answer.
    """
    found: list[Gpu] = []
    with _driver(nvml) as asked:
        if asked is None:
            return found
        with contextlib.suppress(asked.NVMLError):
            driver = _text(asked.nvmlSystemGetDriverVersion())
            for index in range(asked.nvmlDeviceGetCount()):
                # One that fell off the bus takes no other with it.
                with contextlib.suppress(asked.NVMLError):
                    found += _devices(asked, index, driver)
    return found


def driver_gpus(nvml: Any = None) -> int:
    """How many GPUs the driver has, whether they can be used or not; 0 without a driver."""
    with _driver(nvml) as asked:
        if asked is not None:
            with contextlib.suppress(asked.NVMLError):
                return int(asked.nvmlDeviceGetCount())
    return 0


@contextlib.contextmanager
def _driver(nvml: Any) -> Iterator[Any]:
    """The driver's library, opened; None where there is no driver."""
    if nvml is None:
        try:
            import pynvml  # noqa: PLC0415 - an optional dependency: hosts without GPUs go without it
        except ImportError:
            yield None
            return
        nvml = pynvml
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield None
        return
    try:
        yield nvml
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _devices(nvml: Any, index: int, driver: str) -> list[Gpu]:
    """The GPU of this number, or its instances.

    Of a partitioned GPU only its UUID is asked: what else there is to know of it is its administrator's.
    """
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    if not _in_mig_mode(nvml, handle):
        return [_device(nvml, handle, handle, index, driver)]
    return _instances(nvml, handle, _text(nvml.nvmlDeviceGetUUID(handle)), index, driver)


def _device(nvml: Any, handle: Any, card: Any, index: int, driver: str, mig: Mig | None = None) -> Gpu:
    """A GPU, which is its own card, or an instance of a card."""
    return Gpu(
        index,
        _text(nvml.nvmlDeviceGetName(handle)),
        _text(nvml.nvmlDeviceGetUUID(handle)),
        driver,
        int(nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20,
        mig,
        _told(nvml, lambda: nvml.nvmlDeviceGetMinorNumber(card)),
    )


def _told(nvml: Any, question: Callable[[], Any]) -> int | None:
    """The driver's answer; None where it has none."""
    with contextlib.suppress(nvml.NVMLError):
        return int(question())
    return None


def _in_mig_mode(nvml: Any, handle: Any) -> bool:
    """Whether the GPU is partitioned now; where the driver does not answer that, it is a GPU like any other."""
    return bool(_told(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle)[0]) == nvml.NVML_DEVICE_MIG_ENABLE)


def _instances(nvml: Any, handle: Any, parent: str, index: int, driver: str) -> list[Gpu]:
    """The instances of a partitioned GPU, in the order of their numbers."""
    handles = {}
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            handles[number] = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
        except nvml.NVMLError as error:
            if error.value not in (nvml.NVML_ERROR_NOT_FOUND, nvml.NVML_ERROR_INVALID_ARGUMENT):
                raise  # those two say that the number is free
    homes = {number: nvml.nvmlDeviceGetGpuInstanceId(instance) for number, instance in handles.items()}
    tenants = Counter(homes.values())
    found = []
    for number, instance in handles.items():
        mig = Mig(
            parent=parent,
            profile=_text(nvml.nvmlDeviceGetName(instance)).partition(" MIG ")[2] or "unknown",
            index=number,
            alone=tenants[homes[number]] == 1,
            jpeg_engines=_jpeg_engines(nvml, instance),
        )
        found.append(_device(nvml, instance, handle, index, driver, mig))
    return found


def _jpeg_engines(nvml: Any, instance: Any) -> int | None:
    return _told(nvml, lambda: nvml.nvmlDeviceGetAttributes(instance).sharedJpegCount)


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
