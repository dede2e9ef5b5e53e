"""A real GPU, watched through NVML."""

import contextlib
import threading
from typing import Any

import pynvml

from grader_service.gpu.monitor import GpuGone, GpuSnapshot, Utilisation

_RECOVERY_FIELD = getattr(pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
_RECOVERY = {1: "a GPU reset", 2: "a node reboot", 3: "draining its processes", 4: "draining and a reset"}
# Clocks held down by heat, power or hardware protection make a measurement worthless; idling does not.
_THROTTLE = {
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}
_PERIOD_S = 0.35
"""NVML averages over a sixth of a second on GPUs of data centres, and what it gives out may be as old again."""


class NvmlGpu:
    """Implements `GpuMonitor` for the GPU with this UUID; connects at the first look, and anew after it was gone."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self._open = False
        self._handle: Any = None
        self._events: Any = None
        # One thread may find the GPU gone and let go of the driver while another one asks.
        self._lock = threading.RLock()

    def snapshot(self) -> GpuSnapshot:
        """See `GpuMonitor.snapshot`."""
        with self._lock:
            processes, memory = self._asked()
            return GpuSnapshot(
                processes=processes,
                memory_used_mib=int(memory.used) >> 20,
                memory_total_mib=int(memory.total) >> 20,
                recovery_action=self._recovery_action(),
                throttled=self._throttled(),
            )

    def utilisation(self) -> Utilisation:
        """See `GpuMonitor.utilisation`."""
        with self._lock:
            processes, memory = self._asked()
            sm_percent, jpg_percent, period_s = None, None, _PERIOD_S
            with contextlib.suppress(pynvml.NVMLError):
                sm_percent = float(pynvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
            with contextlib.suppress(pynvml.NVMLError):
                percent, period_us = pynvml.nvmlDeviceGetJpgUtilization(self._handle)
                jpg_percent, period_s = float(percent), max(_PERIOD_S, 2 * int(period_us) / 1e6)
            return Utilisation(
                sm_percent=sm_percent,
                jpg_percent=jpg_percent,
                memory_used_mib=int(memory.used) >> 20,
                processes=processes,
                throttled=self._throttled(),
                period_s=period_s,
            )

    def drain_xids(self) -> tuple[int, ...]:
        """See `GpuMonitor.drain_xids`; a GPU that is gone reports none, and its next snapshot says so."""
        found: list[int] = []
        with self._lock, contextlib.suppress(pynvml.NVMLError):
            self._connect()
            while self._events is not None and len(found) < 64:
                found.append(int(pynvml.nvmlEventSetWait_v2(self._events, 0).eventData))
        return tuple(found)

    def close(self) -> None:
        """See `GpuMonitor.close`."""
        with self._lock:
            if not self._open:
                return
            if self._events is not None:
                with contextlib.suppress(pynvml.NVMLError):
                    pynvml.nvmlEventSetFree(self._events)
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
            self._open, self._handle, self._events = False, None, None

    def _asked(self) -> tuple[tuple[int, ...], Any]:
        """Process ids and memory, which every GPU that is there can name."""
        try:
            self._connect()
            memory = pynvml.nvmlDeviceGetMemoryInfo(self._handle)
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except pynvml.NVMLError as error:
            self.close()
            raise GpuGone(f"{self.uuid} does not answer: {error}") from error
        return tuple(int(process.pid) for process in processes), memory

    def _connect(self) -> None:
        if self._handle is not None:
            return
        if not self._open:
            pynvml.nvmlInit()
            self._open = True
        handle = pynvml.nvmlDeviceGetHandleByUUID(self.uuid)
        with contextlib.suppress(pynvml.NVMLError):
            self._events = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._events)
        self._handle = handle

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
