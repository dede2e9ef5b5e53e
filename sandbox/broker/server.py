"""The pod broker: holds the engine's socket, and starts for a runner what the rules allow, and nothing else."""

import contextlib
import fcntl
import itertools
import logging
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader_service.errors import ConfigurationError, SandboxUnavailable
from sandbox.api import PodSpec, SpaceLimits
from sandbox.broker import wire
from sandbox.broker.rules import Bounds, NotAllowed, require_limits, require_pod
from sandbox.docker.engine import DockerHandle
from sandbox.docker.runner import DockerRunner, DockerRunSpace
from sandbox.endpoint import listen
from sandbox.pod import ContainerEnd
from sandbox.run_folder import dead_runs
from sandbox.short_path import socket_address

log = logging.getLogger(__name__)

_FIRST_S = 10.0
"""Longest wait for the first request of a connection; what holds something may be silent for as long as it lives."""
_SEND_S = 10.0
_POLL_S = 0.2
_END_S = 50.0
"""For pods and run spaces to go when the broker is told to stop."""
_UNMADE = "the pod broker's socket {} cannot be made: {}"
_MORE = 32
"""Connections that hold nothing: they ask one thing."""


@dataclass
class _Run:
    """An open run space."""

    space: DockerRunSpace
    starting: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever starts a pod in it, or ends it."""
    ended: bool = False


class PodBroker:
    """Serves connections of one user, each in a thread.

    Args:
        runner: starts pods; made with `shared`.
        peers: ids of the users who may ask.
    """

    def __init__(self, runner: DockerRunner, images: Sequence[str], bounds: Bounds, peers: frozenset[int]) -> None:
        self._runner = runner
        self._images = tuple(images)
        self._bounds = bounds
        self._peers = peers
        self._lock = threading.Lock()
        self._runners = {runner.image_id: runner}
        self._runs: dict[str, _Run] = {}
        self._run_places = threading.BoundedSemaphore(bounds.runs)
        self._pod_places = threading.BoundedSemaphore(bounds.pods)
        self._threads: dict[threading.Thread, socket.socket] = {}

    def serve(self, path: Path, stopped: threading.Event) -> None:
        """Removes what an earlier broker left, then answers on this socket until told to stop; then everything ends.

        Raises:
            ConfigurationError: another broker serves there, or others may move what the engine mounts.
            SandboxUnavailable: what was left cannot be removed, or the socket cannot be made.
        """
        _require_closed(self._runner.state_dir)
        with _alone(path):
            self._runner.sweep()
            with _listening(path) as listener:
                while not stopped.is_set():
                    with contextlib.suppress(TimeoutError):
                        self._welcome(listener.accept()[0])
            self._end()

    def _end(self) -> None:
        with self._lock:
            left = dict(self._threads)
        # First of all nobody hears any more how a pod ended that we end: that would be taken for its own doing.
        for connection in left.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + _END_S
        for thread in left:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _welcome(self, connection: socket.socket) -> None:
        connection.settimeout(_SEND_S)
        with self._lock:
            if len(self._threads) < self._bounds.pods + self._bounds.runs + _MORE:
                thread = threading.Thread(target=self._talk, args=(connection,), name="connection", daemon=True)
                self._threads[thread] = connection
                thread.start()
                return
        log.warning("refused: more connections than one for each pod and each run space")
        connection.close()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):  # nobody hears what is answered
                try:
                    self._answer(connection)
                except OSError as error:
                    log.warning("a connection broke off: %s", error)
                except (NotAllowed, wire.Unreadable) as error:
                    self._refuse(connection, str(error))
                except SandboxUnavailable as error:
                    self._fail(connection, error)
                except Exception:
                    log.exception("a defect of the pod broker")
                    wire.send(connection, wire.Failed(why="a defect of the pod broker, which its log shows"))
        finally:
            with self._lock:
                del self._threads[threading.current_thread()]

    def _answer(self, connection: socket.socket) -> None:
        """Does what the connection asks first."""
        connection.settimeout(_FIRST_S)
        first, uid = wire.receive_request(connection), _peer(connection)
        if uid not in self._peers:
            raise NotAllowed(
                f"user id: expected {sorted(self._peers)}, got {uid} (GRADER_POD_RUNNER_UID of the pod broker)"
            )
        match first:
            case None:
                return
            case wire.TellFacts(image=image):
                wire.send(connection, self._facts(image))
            case wire.Look(image_id=image_id):
                (self._runner if image_id is None else self._runner_of(image_id)).look()
                wire.send(connection, wire.Done())
            case wire.Order(ask="sweep"):
                removed = self._runner.sweep()
                left = tuple(
                    folder.name for folder in itertools.islice(dead_runs(self._runner.state_dir), wire.MOST_LEFT)
                )
                wire.send(connection, wire.Swept(removed=removed, left=left))
            case wire.Open() as asked:
                self._hold_run(connection, asked)
            case wire.Start() as asked:
                self._hold_pod(connection, asked)
            case other:
                raise NotAllowed(f"expected a pod to be started before {other.ask!r}")

    def _hold_run(self, connection: socket.socket, asked: wire.Open) -> None:
        require_limits(asked.limits, self._bounds)
        runner = self._runner_of(asked.image_id)
        # Leaving the space removes everything, and says what could not be removed.
        with (
            _place(self._run_places, f"{self._bounds.runs} run spaces", "RUNS"),
            runner.open_run(asked.run_id, SpaceLimits(**asked.limits.model_dump())) as space,
        ):
            run, token = _Run(space), secrets.token_hex(16)
            self._runs[token] = run
            try:
                wire.send(connection, wire.Opened(space=token))
                if (closing := _next(connection)) is not None and closing.ask != "close":
                    raise NotAllowed("a run space can only be closed")
            finally:
                del self._runs[token]
                with run.starting:
                    run.ended = True
        wire.send(connection, wire.Done())

    def _hold_pod(self, connection: socket.socket, asked: wire.Start) -> None:
        require_pod(asked.pod, self._bounds)
        run = self._runs.get(asked.space)
        if run is None:
            raise NotAllowed("space: expected a run space that is open")
        with _place(self._pod_places, f"{self._bounds.pods} pods", "PODS"), contextlib.ExitStack() as gone:
            with run.starting:
                if run.ended:
                    raise NotAllowed("space: expected a run space that is open")
                handle, listener = run.space.launch(_spec(asked.pod), listen)
            gone.callback(_destroy_quietly, handle)
            with listener:
                wire.send(connection, wire.Started(), listener)
            end = self._obey(connection, run, handle)
            if end is not None:
                gone.pop_all()
        if end is not None:
            log_tail = end.log_tail[-wire.MOST_LOG_CHARS :]
            wire.send(connection, wire.Ended(exit_code=end.exit_code, oom_killed=end.oom_killed, log_tail=log_tail))

    def _obey(self, connection: socket.socket, run: _Run, handle: DockerHandle) -> ContainerEnd | None:
        """Does what is asked about a pod until it is destroyed; None when nobody asks any more."""
        while (asked := _next(connection)) is not None:
            if run.ended:
                # Whatever became of the pod was not its own doing.
                raise NotAllowed("the pod's run space has ended")
            try:
                match asked.ask:
                    case "alive":
                        wire.send(connection, wire.Living(alive=handle.alive()))
                    case "pause":
                        handle.pause()
                        wire.send(connection, wire.Done())
                    case "resume":
                        handle.resume()
                        wire.send(connection, wire.Done())
                    case "output":
                        wire.send(connection, wire.Wrote(output=handle.output()[-wire.MOST_LOG_CHARS :]))
                    case "destroy":
                        return handle.destroy()
                    case other:
                        raise NotAllowed(f"a pod cannot be asked for {other!r}")
            except SandboxUnavailable as error:
                self._fail(connection, error)
        return None

    def _facts(self, image: str) -> wire.Facts:
        if image not in self._images:
            raise NotAllowed(
                f"image: expected one of {', '.join(self._images)}, got {image!r}; the pod broker's GRADER_LAB_IMAGE, "
                "or the labs that are installed there, decide, and those of its runner must be the same"
            )
        runner = self._runner.of_image(image)
        self._runners[runner.image_id] = runner
        return wire.Facts(
            facts=runner.facts,
            image_id=runner.image_id,
            lab_data=str(runner.lab_data) if runner.lab_data is not None else None,
            runs=str(runner.state_dir / "runs"),
        )

    def _runner_of(self, image_id: str) -> DockerRunner:
        """The runner of an image that somebody was told of, perhaps by the broker before this one."""
        for image in self._images:
            if image_id in self._runners:
                break
            with contextlib.suppress(SandboxUnavailable):
                self._facts(image)
        found = self._runners.get(image_id)
        if found is None:
            raise NotAllowed(
                f"image: {image_id} is none that pods may have ({', '.join(self._images)}); where one of these was "
                "built anew, the runner ends for this, and knows the new one once it is started anew"
            )
        return found

    def _fail(self, connection: socket.socket, error: SandboxUnavailable) -> None:
        log.warning("failed: %s", error)
        wire.send(connection, wire.Failed(why=str(error)[:2000]))

    def _refuse(self, connection: socket.socket, why: str) -> None:
        log.warning("refused: %s", why[:2000])
        wire.send(connection, wire.Refused(why=why[:2000]))


def _next(connection: socket.socket) -> wire.Request | None:
    """The next request, whenever it comes."""
    connection.settimeout(None)
    try:
        return wire.receive_request(connection)
    finally:
        connection.settimeout(_SEND_S)


def _spec(pod: wire.PodAsked) -> PodSpec:
    return PodSpec(**{name: getattr(pod, name) for name in type(pod).model_fields})


def _destroy_quietly(handle: DockerHandle) -> None:
    try:
        handle.destroy()
    except SandboxUnavailable as error:  # its run space's end, or a sweep, removes it
        log.warning("a pod that nobody holds is left: %s", error)


def _peer(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows him."""
    form = struct.Struct("3i")
    _, uid, _ = form.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size))
    return int(uid)


@contextlib.contextmanager
def _place(places: threading.BoundedSemaphore, most: str, setting: str) -> Iterator[None]:
    if not places.acquire(blocking=False):
        raise NotAllowed(f"expected at most {most} at once (GRADER_POD_MOST_{setting} of the pod broker)")
    try:
        yield
    finally:
        places.release()


def _require_closed(state_dir: Path) -> None:
    """Refuses a folder in which another user could put something else in the place of a run's.

    Raises:
        ConfigurationError: with the command that closes it.
    """
    for folder in (state_dir, state_dir / "runs"):
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise ConfigurationError(
                f"{folder}: expected a folder that only uid {os.geteuid()} may write to, got uid {found.st_uid} and "
                f"mode {found.st_mode & 0o777:o}; whoever else may write there chooses what the engine mounts: "
                f"`chown {os.geteuid()} {folder}` and `chmod 750 {folder}`"
            )


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keeps a second broker off this socket."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(path.with_suffix(".lock"), flags, 0o600)
    except OSError as error:
        raise SandboxUnavailable(_UNMADE.format(path, error)) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(f"another pod broker serves {path}: end it, or name another socket") from error
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A socket for members of our group; one that a killed broker left is replaced."""
    unheard = path.with_suffix(".new")
    with wire.make_socket() as listener:
        try:
            unheard.unlink(missing_ok=True)
            with socket_address(unheard) as address:
                listener.bind(address)
            unheard.chmod(0o660)
            listener.listen(64)
            unheard.rename(path)  # whoever sees the socket is answered
        except OSError as error:
            raise SandboxUnavailable(_UNMADE.format(path, error)) from error
        listener.settimeout(_POLL_S)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)
