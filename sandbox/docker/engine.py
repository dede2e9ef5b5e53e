"""The connection to a Docker engine that may be gone, slow or busy, and containers that must go away whatever it says.

The client raises its own errors and, from the connection below it, those of `requests`, which are OSErrors.
"""

import contextlib
import threading
import time
from collections.abc import Callable

import docker
from docker.errors import DockerException, NotFound
from docker.models.containers import Container

from grader_service.errors import SandboxUnavailable
from sandbox.docker import failure as docker_failure
from sandbox.pod import ContainerEnd

ENGINE_ERRORS = (DockerException, OSError)
UNREACHABLE = "the Docker engine cannot be reached"
# Reading a state after a kill may need the engine a moment.
_LOG_LINES = 200
_WAIT_S = 10
_REMOVE_S = 10.0
_PAUSE_S = 10.0
"""Cgroup v1 gives up when a pod's processes are slow to reach a point where they can stop, on a busy host."""
_RETRY_S = 0.2
_OUTPUT_S = 5.0
"""Longest wait for what a pod wrote, while it runs: nobody needs that as much as the run's going on."""


def connect_engine(timeout_s: float = 60.0) -> docker.DockerClient:
    """A client of the engine that the environment names (`DOCKER_HOST`, or the default socket).

    The contexts of the Docker command line are not followed: pods mount folders of this host.

    Raises:
        SandboxUnavailable: no engine answers; the message says what to do.
    """
    client = None
    try:
        client = docker.from_env(timeout=timeout_s, use_context=False)
        client.ping()
    except (*ENGINE_ERRORS, ValueError) as error:
        if client is not None:
            client.close()
        raise unavailable(UNREACHABLE, error) from error
    return client


def unavailable(what: str, error: Exception) -> SandboxUnavailable:
    """The error to raise: what failed, what the engine said, and what an operator should do about it."""
    advice = docker_failure.hint(str(error))
    return SandboxUnavailable(f"{what}: {error}" + (f" ({advice})" if advice else ""))


def remove_container(container: Container) -> None:
    """Kills and removes a container; returns once it is gone.

    Raises:
        SandboxUnavailable: the engine did not do it in several attempts.
    """

    def remove() -> None:
        try:
            container.remove(force=True, v=True)
        except NotFound:
            return
        except ENGINE_ERRORS as error:
            # Also when somebody else is removing it just now: until that is done its volumes are in use.
            raise unavailable(f"a pod's container {container.name} could not be removed", error) from error

    _patiently(remove, _REMOVE_S)


def _patiently(work: Callable[[], None], seconds: float) -> None:
    """Does it, again and again for so long; then what the last try raised is raised."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            work()
        except SandboxUnavailable:
            if time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(_RETRY_S)


class DockerHandle:
    """A container as `sandbox.pod.ContainerHandle`."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._asking = threading.Lock()

    def alive(self) -> bool:
        """See `ContainerHandle.alive`."""
        try:
            self._container.reload()
        except NotFound:
            return False
        except ENGINE_ERRORS as error:
            raise unavailable("a pod cannot be watched", error) from error
        return bool(self._container.status in ("created", "running", "paused", "restarting"))

    def pause(self) -> None:
        """See `ContainerHandle.pause`."""
        _patiently(lambda: self._order("pause"), _PAUSE_S)

    def resume(self) -> None:
        """See `ContainerHandle.resume`."""
        self._order("unpause")

    def output(self) -> str:
        """See `ContainerHandle.output`.

        In a thread of its own, and one at a time: an engine may hang here, and nowhere else, for as long as it likes.
        """
        found: list[str | SandboxUnavailable] = []

        def ask() -> None:
            try:
                found.append(self._log())
            except SandboxUnavailable as error:
                found.append(error)
            finally:
                self._asking.release()

        if self._asking.acquire(timeout=_OUTPUT_S):
            asking = threading.Thread(target=ask, name="pod-output", daemon=True)
            asking.start()
            asking.join(_OUTPUT_S)
        if not found:
            raise SandboxUnavailable(f"the engine did not say within {_OUTPUT_S:g} s what a pod wrote")
        if isinstance(found[0], SandboxUnavailable):
            raise found[0]
        return found[0]

    def _log(self) -> str:
        try:
            return str(self._container.logs(tail=_LOG_LINES).decode(errors="replace"))
        except ENGINE_ERRORS as error:
            raise unavailable("what a pod wrote cannot be read", error) from error

    def destroy(self) -> ContainerEnd:
        """See `ContainerHandle.destroy`.

        Raises:
            SandboxUnavailable: the container may still be there.
        """
        end = ContainerEnd(None, oom_killed=False, log_tail="(the engine could not tell how the pod ended)")
        with contextlib.suppress(SandboxUnavailable, *ENGINE_ERRORS):
            end = self._kill()
        remove_container(self._container)
        return end

    def _kill(self) -> ContainerEnd:
        self._container.reload()
        paused = self._container.status == "paused"
        self._order("kill")
        if paused:  # a frozen process does not die before it thaws, and most engines thaw it themselves
            self._order("unpause")
        with contextlib.suppress(*ENGINE_ERRORS):
            self._container.wait(timeout=_WAIT_S)
        self._container.reload()
        state = self._container.attrs["State"]
        log_tail = "(the engine could not tell what the pod wrote)"
        with contextlib.suppress(SandboxUnavailable):
            log_tail = self._log()
        # An exit code is worth having only if the process ended by itself; a killed one says 137.
        return ContainerEnd(int(state.get("ExitCode", -1)), bool(state.get("OOMKilled")), log_tail)

    def _order(self, verb: str) -> None:
        try:
            getattr(self._container, verb)()
        except ENGINE_ERRORS as error:
            if not isinstance(error, NotFound) and not docker_failure.already_so(str(error)):
                raise unavailable(f"{verb} of a pod failed", error) from error
