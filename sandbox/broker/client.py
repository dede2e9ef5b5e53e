"""A runner whose pods are started by the pod broker: it needs no engine, and no right beside those of any process."""

import contextlib
import copy
import socket
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Self, TypeVar

from grader_service.errors import Outdated, SandboxUnavailable
from sandbox.api import Pod, PodSpec, SandboxFacts, SpaceLimits
from sandbox.broker import wire
from sandbox.docker import options as docker_options
from sandbox.endpoint import Endpoint
from sandbox.frames import FrameLimits
from sandbox.pod import ConnectedPod, ContainerEnd
from sandbox.run_folder import dead_runs, leaves, remove_tree
from sandbox.short_path import socket_address

CALL_S = 200.0
"""Longest wait for an answer: the broker waits for the engine for a minute, and asks again where a call failed."""
_SEND_S = 10.0
_T = TypeVar("_T", bound=wire.Answer)


class _Refused(SandboxUnavailable):
    """The broker's rules have it so."""


class Line:
    """One connection to the broker; threads take turns on it."""

    def __init__(self, path: Path) -> None:
        """Connects.

        Raises:
            SandboxUnavailable: the broker is not there.
        """
        self._path = path
        self._turn = threading.Lock()
        self.lost = False
        """Whether the connection is gone, and with it what it held."""
        self._connection = wire.make_socket()
        self._connection.settimeout(_SEND_S)
        try:
            with socket_address(path) as address:
                self._connection.connect(address)
        except OSError as error:
            self._connection.close()
            raise _away(path, error) from error

    def call(self, request: wire.Request, expected: type[_T]) -> _T:
        """Asks, and returns the answer.

        Raises:
            SandboxUnavailable: what was asked failed or was refused, or the connection was lost.
        """
        answer, given = self._exchange(request, expected)
        if given is not None:
            given.close()
        return answer

    def start(self, request: wire.Start) -> socket.socket:
        """Has a pod started, and returns the socket on which its guest connects.

        Raises:
            SandboxUnavailable: as `call`.
        """
        _, given = self._exchange(request, wire.Started)
        if given is None:
            raise _away(self._path, "it started a pod and gave no socket for it")
        return given

    def _exchange(self, request: wire.Request, expected: type[_T]) -> tuple[_T, socket.socket | None]:
        with self._turn:
            if self.lost:
                raise SandboxUnavailable(f"the connection to the pod broker {self._path} was lost, and what it held")
            try:
                self._connection.settimeout(_SEND_S)
                wire.send(self._connection, request)
                self._connection.settimeout(CALL_S)
                answer, given = wire.receive_answer(self._connection)
            except (OSError, wire.Unreadable) as error:
                self._lose()
                raise _away(self._path, error) from error
            except BaseException:  # told to stop: the answer would be taken for the next one's
                self._lose()
                raise
            if isinstance(answer, expected):
                return answer, given
            if given is not None:
                given.close()
            if isinstance(answer, wire.Failed):
                raise SandboxUnavailable(answer.why)
            self._lose()
            if isinstance(answer, wire.Refused):
                raise _Refused(f"the pod broker {self._path} refuses: {answer.why}")
            raise _away(self._path, f"{request.ask!r} was answered by {answer.answer if answer else 'its end'!r}")

    def close(self) -> None:
        """Ends the connection, and with it what it held."""
        with self._turn:
            self._lose()

    def _lose(self) -> None:
        self.lost = True
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BrokerRunner:
    """Implements `SandboxRunner` over the broker's socket.

    Args:
        state_dir: folder of this process, where it keeps what its runs need beside their run spaces.
        any_lab: the image stands for that of every lab, so that `of_image` changes nothing.
    """

    def __init__(self, path: Path, image: str, state_dir: Path, *, any_lab: bool = False) -> None:
        self._path = path
        self._state_dir = state_dir
        self._any_lab = any_lab
        self._told = self._ask(wire.TellFacts(image=image), wire.Facts)

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return self._told.facts

    @property
    def lab_data(self) -> Path | None:
        """Folder of the host that pods find the lab's data in: the broker's to choose."""
        return Path(self._told.lab_data) if self._told.lab_data is not None else None

    def of_image(self, image: str) -> "BrokerRunner":
        """See `SandboxRunner.of_image`."""
        if self._any_lab or image == self._told.facts.image:
            return self
        other = copy.copy(self)
        other._told = self._ask(wire.TellFacts(image=image), wire.Facts)  # noqa: SLF001 - a copy of this object
        return other

    def look(self) -> None:
        """See `SandboxRunner.look`.

        Raises:
            Outdated: a broker that came after the one of our start knows our image no more.
        """
        try:
            self._ask(wire.Look(image_id=self._told.image_id), wire.Done)
        except _Refused as error:
            raise Outdated(str(error)) from error

    def open_run(self, run_id: str, limits: SpaceLimits) -> "BrokerRunSpace":
        """See `SandboxRunner.open_run`."""
        return BrokerRunSpace(self._path, Path(self._told.runs), self._told.image_id, run_id, limits)

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`; beside what the broker removes, what this process's like wrote and left."""
        removed = sum(remove_tree(folder) for folder in dead_runs(self._state_dir))
        swept = self._ask(wire.Order(ask="sweep"), wire.Swept)
        if not swept.left:
            return removed + swept.removed
        for run_id in swept.left:
            _empty(Path(self._told.runs) / run_id)
        return removed + swept.removed + self._ask(wire.Order(ask="sweep"), wire.Swept).removed

    def _ask(self, request: wire.Request, expected: type[_T]) -> _T:
        with Line(self._path) as line:
            return line.call(request, expected)


class BrokerRunSpace:
    """See `sandbox.api.RunSpace`."""

    paths = docker_options.GUEST_PATHS

    def __init__(self, path: Path, runs: Path, image_id: str, run_id: str, limits: SpaceLimits) -> None:
        self._path = path
        self._folder = runs / run_id
        self.submission_dir, self.shards_dir, _ = leaves(self._folder)
        self._asked = (run_id, image_id, limits)
        self._pods: list[tuple[ConnectedPod, Line]] = []
        self._line: Line
        self._token = ""

    def __enter__(self) -> Self:
        run_id, image_id, limits = self._asked
        asked = wire.Open(run_id=run_id, image_id=image_id, limits=wire.Limits(**asdict(limits)))
        self._line = Line(self._path)
        try:
            self._token = self._line.call(asked, wire.Opened).space
        except BaseException:
            self._line.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for pod, line in reversed(self._pods):
            with line, contextlib.suppress(SandboxUnavailable):
                pod.end()
        _empty(self._folder)
        with self._line:
            try:
                self._line.call(wire.Order(ask="close"), wire.Done)
            except SandboxUnavailable:
                if kind is None:
                    raise

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`."""
        asked = {name: getattr(spec, name) for name in wire.PodAsked.model_fields}
        try:
            request = wire.Start(space=self._token, pod=wire.PodAsked(**asked))
        except ValueError as error:
            raise SandboxUnavailable(f"no pod broker starts a pod like this: {error}") from error
        line = Line(self._path)
        try:
            listener = line.start(request)
        except BaseException:
            line.close()
            raise
        pod = ConnectedPod(spec, BrokerHandle(line), Endpoint(listener, FrameLimits()))
        self._pods.append((pod, line))
        return pod

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """See `RunSpace.quiet`; it never does anything else."""
        return contextlib.nullcontext()


class BrokerHandle:
    """Implements `sandbox.pod.ContainerHandle`: a pod that the broker holds for as long as its connection lasts."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def alive(self) -> bool:
        """See `ContainerHandle.alive`; a broker that went away took its pods along."""
        try:
            return self._line.call(wire.Order(ask="alive"), wire.Living).alive
        except SandboxUnavailable:
            if self._line.lost:
                return False
            raise

    def pause(self) -> None:
        """See `ContainerHandle.pause`."""
        self._line.call(wire.Order(ask="pause"), wire.Done)

    def resume(self) -> None:
        """See `ContainerHandle.resume`."""
        self._line.call(wire.Order(ask="resume"), wire.Done)

    def output(self) -> str:
        """See `ContainerHandle.output`."""
        return self._line.call(wire.Order(ask="output"), wire.Wrote).output

    def destroy(self) -> ContainerEnd:
        """See `ContainerHandle.destroy`.

        Raises:
            SandboxUnavailable: the container may still be there, or how the pod ended cannot be known: the broker went
                away, which ends its pods, so that nothing is the pod's own doing.
        """
        ended = self._line.call(wire.Order(ask="destroy"), wire.Ended)
        self._line.close()
        return ContainerEnd(ended.exit_code, oom_killed=ended.oom_killed, log_tail=ended.log_tail)


def _empty(folder: Path) -> None:
    """Removes what this process, or one like it, wrote to a run's folder; the rest is the broker's."""
    for leaf in leaves(folder):
        with contextlib.suppress(OSError):
            for path in list(leaf.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    remove_tree(path)
                else:
                    path.unlink(missing_ok=True)


def _away(path: Path, error: Exception | str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"the pod broker {path} does not answer: {error}; see that `grader pods` runs (with compose: images/compose.sh "
        "restart pods), that its log shows no error, and that this process has the user and the group that it serves"
    )
