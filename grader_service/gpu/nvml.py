"""A real GPU, watched through NVML."""

import contextlib
from typing import Any

import pynvml

from grader_service.errors import ConfigurationError
from grader_service.gpu.monitor import GpuGone, GpuSnapshot

_RECOVERY_FIELD = getattr(pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
_RECOVERY = {1: "a GPU reset", 2: "a node reboot", 3: "draining its processes", 4: "draining and a reset"}
# Clocks held down by heat, power or hardware protection make a measurement worthless; idling does not.
_THROTTLE = {
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}


class NvmlGpu:
    """Implements `GpuMonitor` for the GPU with this UUID.

    Raises:
        ConfigurationError: no driver, or no such GPU.
    """

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError as error:
            raise ConfigurationError(f"GPU {uuid} cannot be watched: {error}; see `grader doctor`") from error
        self._events: Any = None
        with contextlib.suppress(pynvml.NVMLError):
            self._events = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(self._handle, pynvml.nvmlEventTypeXidCriticalError, self._events)

    def snapshot(self) -> GpuSnapshot:
        """See `GpuMonitor.snapshot`."""
        try:
            memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except pynvml.NVMLError as error:
            raise GpuGone(f"{self.uuid} does not answer: {error}") from error
        return GpuSnapshot(
            processes=tuple(int(process.pid) for process in processes),
            memory_used_mib=int(memory.used) >> 20,
            memory_total_mib=int(memory.total) >> 20,
            recovery_action=self._recovery_action(),
            throttled=self._throttled(),
        )

    def drain_xids(self) -> tuple[int, ...]:
        """See `GpuMonitor.drain_xids`."""
        found: list[int] = []
        while self._events is not None and len(found) < 64:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
            except pynvml.NVMLError:
                break
            found.append(int(event.eventData))
        return tuple(found)

    def close(self) -> None:
        """See `GpuMonitor.close`."""
        with contextlib.suppress(pynvml.NVMLError):
            if self._events is not None:
                pynvml.nvmlEventSetFree(self._events)
            pynvml.nvmlShutdown()

    def _recovery_action(self) -> str | None:
        if _RECOVERY_FIELD is None:
            return None
        with contextlib.suppress(pynvml.NVMLError):
            value = pynvml.nvmlDeviceGetFieldValues(self._handle, [_RECOVERY_FIELD])[0]
            if value.nvmlReturn == pynvml.NVML_SUCCESS:
                return _RECOVERY.get(int(value.value.uiVal))
        return None

    def _throttled(self) -> str | None:
        with contextlib.suppress(pynvml.NVMLError):
            reasons = int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
            for name, text in _THROTTLE.items():
                if reasons & int(getattr(pynvml, name, 0)):
                    return text
        return None
