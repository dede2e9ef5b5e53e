"""A pod as the flow sees it: one endpoint, one container, and the rule that nothing survives its end."""

import contextlib
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from grader_service.errors import SandboxUnavailable
from grader_service.model.base import neutralise
from grader_service.model.evidence import Ending, PodRecord
from sandbox.api import PodSpec
from sandbox.endpoint import Endpoint, Silence
from sandbox.frames import FrameError, Message

CONNECT_S = 60.0
"""Longest wait for a guest to connect: starting an interpreter on a busy host, nothing more."""
_LOG_CHARS = 8000
_RETURN = re.compile(r"\r\n?")


@dataclass(frozen=True)
class ContainerEnd:
    """How the pod's main process ended, as its engine tells."""

    exit_code: int | None
    oom_killed: bool
    log_tail: str


class ContainerHandle(Protocol):
    """What holds a pod's processes: a container, or a process tree."""

    def alive(self) -> bool:
        """Whether the pod's main process runs."""
        ...

    def pause(self) -> None:
        """Freezes every process."""
        ...

    def resume(self) -> None:
        """Thaws every process."""
        ...

    def output(self) -> str:
        """The last of what the processes have written to standard output and error so far.

        From any thread, beside whatever else is asked; while it waits, it holds nothing up that ends the pod.

        Raises:
            SandboxUnavailable: the engine cannot tell, or not within seconds.
        """
        ...

    def destroy(self) -> ContainerEnd:
        """Kills every process and removes the container; never raises for what the processes did."""
        ...


class ConnectedPod:
    """Implements `sandbox.api.Pod` on the handle of any container.

    One thread talks with it; any other one may end it meanwhile, and the first one is told so.
    """

    def __init__(self, spec: PodSpec, handle: ContainerHandle, endpoint: Endpoint) -> None:
        self.spec = spec
        self._handle = handle
        self._endpoint = endpoint
        self._started = time.monotonic()
        self._ending: Ending | None = None
        self._detail = ""
        self._record: PodRecord | None = None
        self._lock = threading.Lock()

    def alive(self) -> bool:
        """See `Pod.alive`."""
        return self._ending is None and self._handle.alive()

    def start_clock(self) -> bool:
        """See `Pod.start_clock`."""
        if not self.alive():
            return False
        self._started = time.monotonic()
        return True

    def send(self, body: Mapping[str, object], blob: bytes = b"", *, timeout_s: float = 30.0) -> Ending | None:
        """See `Pod.send`."""
        if (ending := self._connect()) is not None:
            return ending
        silence = self._endpoint.send(body, blob, time.monotonic() + timeout_s)
        return None if silence is None else self._fell_silent(silence, timeout_s)

    def receive(self, timeout_s: float) -> Message | Ending:
        """See `Pod.receive`."""
        deadline = time.monotonic() + timeout_s
        if (ending := self._connect()) is not None:
            return ending
        try:
            message = self._endpoint.receive(deadline)
        except FrameError as error:
            self._detail = str(error)
            return self._stop(Ending.PROTOCOL_VIOLATION)
        if isinstance(message, Silence):
            return self._fell_silent(message, timeout_s)
        return message

    def pause(self) -> None:
        """See `Pod.pause`."""
        with self._lock:
            if self._ending is None:
                self._handle.pause()

    def resume(self) -> None:
        """See `Pod.resume`."""
        with self._lock:
            if self._ending is None:
                self._handle.resume()

    def output(self) -> str:
        """See `Pod.output`."""
        if self._record is None:
            # Without the lock: an engine that does not say what a pod wrote must still be able to end it.
            with contextlib.suppress(SandboxUnavailable):
                return _shown(self._handle.output())
        return "" if self._record is None else self._record.log_tail

    def reject(self, why: str) -> Ending:
        """Ends the pod because a frame that is valid JSON is not a valid message."""
        self._detail = why
        return self._stop(Ending.PROTOCOL_VIOLATION)

    def end(self) -> PodRecord:
        """See `Pod.end`."""
        if self._record is None:
            self._stop(self._ending or Ending.COMPLETED)
        assert self._record is not None  # noqa: S101 - _stop() set it
        return self._record

    def _connect(self) -> Ending | None:
        """Connects to the guest, which does so before it runs a line of the learner's: no connection is our failure."""
        if self._ending is not None:
            return self._ending
        silence = self._endpoint.connect(time.monotonic() + CONNECT_S, self._handle.alive)
        if silence is None:
            return None
        if (ending := self._fell_silent(silence, CONNECT_S)) is Ending.COMPLETED:
            return ending  # another thread ended it
        record = self.end()
        raise SandboxUnavailable(
            f"the {record.role.value} pod never connected ({ending.value}, exit code {record.exit_code}): "
            f"{record.detail} {record.log_tail[-1500:]}"
        )

    def _fell_silent(self, silence: Silence, timeout_s: float) -> Ending:
        if silence is Silence.CLOSED:
            self._detail = "the pod's process ended or closed its connection"
            return self._stop(Ending.EXITED)
        self._detail = f"no message within {timeout_s:g} s"
        return self._stop(Ending.TIMED_OUT)

    def _stop(self, ending: Ending) -> Ending:
        with self._lock:
            if self._record is None:
                self._record = self._destroyed(ending)
                self._ending = self._record.ending
            return self._record.ending

    def _destroyed(self, ending: Ending) -> PodRecord:
        self._endpoint.close()
        end = self._handle.destroy()
        if end.oom_killed and ending in (Ending.EXITED, Ending.TIMED_OUT):
            ending = Ending.OUT_OF_MEMORY
        return PodRecord(
            role=self.spec.role,
            ending=ending,
            exit_code=end.exit_code,
            wall_s=time.monotonic() - self._started,  # a GPU's memory is free only when the pod is gone
            oom_killed=end.oom_killed,
            log_tail=_shown(end.log_tail),
            detail=neutralise(self._detail[:_LOG_CHARS]),
        )


def _shown(written: str) -> str:
    """The end of what a pod wrote, safe to show; what overwrites a line of a terminal, as bars do, is a line here."""
    return neutralise(_RETURN.sub("\n", written[-_LOG_CHARS:]))
