"""A real GPU, or an instance of a partitioned one, watched through NVML."""

import contextlib
import threading
from typing import Any

import pynvml

from grader_service.host.gpu.monitor import GpuGone, GpuSnapshot, Utilisation
from grader_service.host.gpu.xid import Blame, blame

_RECOVERY_FIELD = getattr(pynvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
_RECOVERY = {1: "a GPU reset", 2: "a node reboot", 3: "draining its processes", 4: "draining and a reset"}
# Clocks held down by heat, power or hardware protection make a measurement worthless; idling does not.
_THROTTLE = {
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}
_MOST_XIDS = 64
_MIG_UUID = "MIG-"
"""How the UUID of an instance begins; that of a GPU begins with `GPU-`."""
_ANY_INSTANCE = 0xFFFFFFFF
"""NVML's number for an event that it can attribute to no instance."""
_PERIOD_S = 0.35
"""NVML averages over a sixth of a second on GPUs of data centres, and what it gives out may be as old again."""


class NvmlGpu:
    """Implements `GpuMonitor` for the GPU with this UUID; connects at the first look, and anew after it was gone.

    Of an instance of a partitioned GPU (MIG), memory and processes are the instance's own. Faults are told on the GPU
    and kept when they are the instance's or the whole GPU's; clocks and resets are the GPU's. How busy it is stays
    unknown: the driver does not say it of an instance, and what the GPU does is its neighbours' work too.
    """

    def __init__(self, uuid: str, nvml: Any = pynvml) -> None:
        self.uuid = uuid
        self._nvml = nvml
        self._open = False
        self._handle: Any = None
        # The GPU itself, and which part of it this is: numbers of the GPU instance and the compute instance.
        self._board: Any = None
        self._instance: tuple[int, int] | None = None
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
                recovery_action=self._recovery_action(),
            )

    def utilisation(self) -> Utilisation:
        """See `GpuMonitor.utilisation`."""
        with self._lock:
            processes, memory = self._asked()
            sm_percent, jpg_percent, period_s = None, None, _PERIOD_S
            with contextlib.suppress(self._nvml.NVMLError):
                sm_percent = float(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)
            with contextlib.suppress(self._nvml.NVMLError):
                percent, period_us = self._nvml.nvmlDeviceGetJpgUtilization(self._handle)
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
        with self._lock, contextlib.suppress(self._nvml.NVMLError):
            self._connect()
            for _ in range(_MOST_XIDS if self._events is not None else 0):
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
                if self._concerns(event):
                    found.append(int(event.eventData))
        return tuple(found)

    def close(self) -> None:
        """See `GpuMonitor.close`."""
        with self._lock:
            if not self._open:
                return
            if self._events is not None:
                with contextlib.suppress(self._nvml.NVMLError):
                    self._nvml.nvmlEventSetFree(self._events)
            with contextlib.suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
            self._open, self._handle, self._events = False, None, None
            self._board, self._instance = None, None

    def _asked(self) -> tuple[tuple[int, ...], Any]:
        """Process ids and memory, which every GPU that is there can name."""
        try:
            self._connect()
            self._refuse_another_instance()
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
            processes = self._processes()
        except self._nvml.NVMLError as error:
            self.close()
            raise GpuGone(f"{self.uuid} does not answer: {error}") from error
        return tuple(int(process.pid) for process in processes), memory

    def _processes(self) -> list[Any]:
        """Those of the instance where this is one: the GPU's own list is that of all instances."""
        try:
            return list(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        except self._nvml.NVMLError as error:
            if self._instance is None or error.value != self._nvml.NVML_ERROR_NOT_SUPPORTED:
                raise
        everybody = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._board)
        return [one for one in everybody if (one.gpuInstanceId, one.computeInstanceId) == self._instance]

    def _refuse_another_instance(self) -> None:
        """The driver may give the handle of an instance that was taken apart to a new one."""
        if self._instance is None:
            return
        now = self._nvml.nvmlDeviceGetUUID(self._handle)
        now = now.decode() if isinstance(now, bytes) else str(now)
        if now != self.uuid:
            self.close()
            raise GpuGone(f"{self.uuid} is gone: its GPU was partitioned anew, and {now} has its place")

    def _concerns(self, event: Any) -> bool:
        """Whether an event of the GPU is to be told of this device.

        Of what the driver attributes to no instance, faults of the hardware are every instance's. What a program did is
        nobody's then: it may have been a neighbour's.
        """
        if self._instance is None:
            return True
        gpu_instance, compute_instance = int(event.gpuInstanceId), int(event.computeInstanceId)
        if gpu_instance == _ANY_INSTANCE:
            return blame(int(event.eventData)) is Blame.HARDWARE
        return gpu_instance == self._instance[0] and compute_instance in (self._instance[1], _ANY_INSTANCE)

    def _connect(self) -> None:
        if self._handle is not None:
            return
        if not self._open:
            self._nvml.nvmlInit()
            self._open = True
        handle = board = self._nvml.nvmlDeviceGetHandleByUUID(self.uuid)
        instance = None
        if self.uuid.startswith(_MIG_UUID):
            board = self._nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            instance = (
                int(self._nvml.nvmlDeviceGetGpuInstanceId(handle)),
                int(self._nvml.nvmlDeviceGetComputeInstanceId(handle)),
            )
        with contextlib.suppress(self._nvml.NVMLError):
            self._events = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(board, self._nvml.nvmlEventTypeXidCriticalError, self._events)
        self._handle, self._board, self._instance = handle, board, instance

    def _recovery_action(self) -> str | None:
        if _RECOVERY_FIELD is None:
            return None
        with contextlib.suppress(self._nvml.NVMLError):
            value = self._nvml.nvmlDeviceGetFieldValues(self._board, [_RECOVERY_FIELD])[0]
            if value.nvmlReturn == self._nvml.NVML_SUCCESS:
                return _RECOVERY.get(int(value.value.uiVal))
        return None

    def _throttled(self) -> str | None:
        with contextlib.suppress(self._nvml.NVMLError):
            reasons = int(self._nvml.nvmlDeviceGetCurrentClocksEventReasons(self._board))
            for name, text in _THROTTLE.items():
                if reasons & int(getattr(self._nvml, name, 0)):
                    return text
        return None
