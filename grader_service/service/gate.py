"""Whether this worker's device may take a run now, and how it came out of one."""

import structlog

from grader_service.host.gpu.steward import GpuUnfit, Health, Steward
from grader_service.store import devices
from grader_service.store.engine import Store

log = structlog.get_logger(__name__)


class DeviceGate:
    """The gate of one GPU, which a steward guards, or of a slot of a host without one."""

    def __init__(self, store: Store, device_id: str, host: str, model: str, steward: Steward | None) -> None:
        self._store = store
        self._device_id = device_id
        self._host = host
        self._model = model
        self._steward = steward

    def open(self) -> bool:
        """Whether a run may start now, ready in the store and clean; looked at before anything is claimed."""
        state = self.seen()
        if state != devices.READY:
            log.warning("device_closed", device=self._device_id, state=state)
            return False
        if self._steward is not None:
            try:
                self._steward.admit()
            except GpuUnfit as error:
                log.error("device_unfit", device=self._device_id, reason=str(error))  # noqa: TRY400 - no traceback
                return False
        return True

    def free(self) -> bool:
        """Whether what can wait may use the device now, with nobody on it; a look that changes nothing."""
        here, _ = devices.state_and_reason(self._store, self._device_id)
        return here == devices.READY and (self._steward is None or self._steward.is_free())

    def release(self) -> Health | None:
        """How the device came out of a run; None where there is no GPU.

        Raises:
            GpuUnfit: the hardware failed during the run, whose result must not be used.
        """
        return self._steward.release() if self._steward is not None else None

    def examine(self) -> None:
        """Looks at the device after a run broke off, as closely as before the next one.

        Raises:
            GpuUnfit: that run left it unfit.
        """
        if self._steward is not None:
            self._steward.admit()

    def seen(self) -> str:
        """Tells the store that the device is here; returns its state."""
        return devices.see(self._store, self._device_id, self._host, self._model)
