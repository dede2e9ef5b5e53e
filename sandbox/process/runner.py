"""Runs pods as plain process trees on this host: no isolation at all, for code that you trust.

It honours the same contract as the Docker runner where a process can (deadlines, everything killed, frames, memory
watched), and none of its walls: the guest sees the host's files, network and other processes.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from grader_service.errors import SandboxUnavailable
from sandbox.api import GuestPaths, Pod, PodSpec, SandboxFacts, Scratch, SpaceLimits
from sandbox.docker.options import guest_command
from sandbox.endpoint import SOCKET_NAME, Endpoint
from sandbox.frames import FrameLimits
from sandbox.pod import ConnectedPod, ContainerEnd
from sandbox.run_folder import dead_runs, remove_tree
from sandbox.run_space import LocalRunSpace
from sandbox.short_path import ShortPath, sweep_links

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_END_S = 30.0
_OUTPUT_S = 5.0
# What a guest inherits of our environment; everything else (keys, tokens, PYTHON*, LD_*) stays here.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


class ProcessRunner:
    """A runner whose pods are process trees of `python`, an interpreter that has torch, torchvision and DALI.

    Args:
        lab_data: folder with the JPEGs that the lab hands out, if it has any.
        gpu: UUID of the GPU, or of the MIG instance, that pods get; None where nobody looks after one.
    """

    def __init__(
        self, state_dir: Path, *, python: str = sys.executable, lab_data: Path | None = None, gpu: str | None = None
    ) -> None:
        self._gpu = gpu
        self._state_dir = state_dir.resolve()
        self._python = python
        self._lab_data = lab_data

    @property
    def facts(self) -> SandboxFacts:
        """See `SandboxRunner.facts`."""
        return SandboxFacts(name="process", isolated=False, image=None, image_digest=None, engine=None, gpu_access=None)

    def of_image(self, image: str) -> "ProcessRunner":
        """See `SandboxRunner.of_image`; there are no images here."""
        del image
        return self

    def look(self) -> None:
        """See `SandboxRunner.look`; of an engine there is the interpreter."""
        if shutil.which(self._python) is None:
            raise SandboxUnavailable(f"the interpreter {self._python} cannot be run; GRADER_LAB_PYTHON names another")

    def open_run(self, run_id: str, limits: SpaceLimits) -> "ProcessRunSpace":
        """See `SandboxRunner.open_run`; scratch folders have no size limit here."""
        del limits
        return ProcessRunSpace(self._state_dir, self._python, self._lab_data, run_id, self._gpu)

    def sweep(self) -> int:
        """See `SandboxRunner.sweep`. Trees end by themselves when their grader does; only folders can be left."""
        removed = sum(remove_tree(folder) for folder in dead_runs(self._state_dir))
        sweep_links()
        return removed


class ProcessRunSpace(LocalRunSpace):
    """See `sandbox.api.RunSpace`."""

    def __init__(
        self, state_dir: Path, python: str, lab_data: Path | None, run_id: str, gpu: str | None = None
    ) -> None:
        super().__init__(state_dir, run_id)
        # CUDA shows a process one instance only: without a name the first of the host, which may be another worker's.
        self._visible = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        self._python = python
        root = self._folder.root
        self._kept_in = root.parent
        self._short = ShortPath(root)
        self.paths = GuestPaths(
            workspace=str(root / "workspace"),
            tmp=str(self._short.path / "tmp"),
            shm=str(root / "shm"),
            submission=str(self.submission_dir),
            shards=str(self.shards_dir),
            lab_data=str(lab_data or root / "lab-data"),
        )

    def _make(self) -> None:
        try:
            self._short.make()
            for path in (self.paths.workspace, self.paths.tmp, self.paths.shm):
                self._folder.open_folder(Path(path))
        except OSError as error:
            raise SandboxUnavailable(f"no run can be kept in {self._kept_in}: {error}") from error

    def _remove(self) -> None:
        self._short.remove()

    def start(self, spec: PodSpec) -> Pod:
        """See `RunSpace.start`."""
        number, self._started = self._started, self._started + 1
        try:
            socket_dir = self._folder.link(f"{spec.role.value}-{number}")
            tmp = self.paths.tmp
            if spec.scratch is Scratch.NONE:
                tmp = str(self._folder.open_folder(self._short.path / f"tmp-{number}"))
            endpoint = Endpoint(socket_dir, FrameLimits())
        except OSError as error:
            raise SandboxUnavailable(f"the {spec.role.value} pod's folders could not be made: {error}") from error
        home = self.paths.workspace if spec.scratch is Scratch.READ_WRITE else tmp
        environment = {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            **self._visible,
            "HOME": home,
            "TMPDIR": tmp,
            "LANG": "C.UTF-8",
            "MPLBACKEND": "Agg",
            "XDG_CACHE_HOME": f"{tmp}/.cache",
            "GRADER_DATA_DIR": self.paths.lab_data,
            "GRADER_LINK": str(socket_dir / SOCKET_NAME),
            **spec.environment,
        }
        command = guest_command(spec.program, self._python, str(self._folder.code))
        try:
            process = self.launch(command, spec.memory_mib, spec.cpus, home, environment)
        except OSError as error:
            endpoint.close()
            raise SandboxUnavailable(f"the {spec.role.value} pod could not be started: {error}") from error
        pod = ConnectedPod(spec, _TreeHandle(process), endpoint)
        self._pods.append(pod)
        return pod

    def launch(
        self, command: list[str], memory_mib: int, cpus: Sequence[int], cwd: str, environment: dict[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Starts a supervisor, and below it the guest's command line.

        Raises:
            OSError: no process could be made.
        """
        pinned = [sys.executable, "-I", "-S", "-c", _PIN, ",".join(map(str, cpus)), *command]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(memory_mib), *pinned],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )


# Runs before the guest in the same process: it ends with its supervisor, gets its CPU set and dumps no core; then the
# guest's own command line.
_PIN = (
    "import ctypes, os, resource, signal, sys\n"
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)\n"
    "cpus = {int(c) for c in sys.argv[1].split(',')} & os.sched_getaffinity(0)\n"
    "cpus and os.sched_setaffinity(0, cpus)\n"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    "os.execv(sys.argv[2], sys.argv[2:])\n"
)


class _TreeHandle:
    """A supervised process tree as `sandbox.pod.ContainerHandle`; threads take turns at the supervisor."""

    def __init__(self, supervisor: "subprocess.Popen[bytes]") -> None:
        """Waits until the supervisor has started the guest, is gone, or hangs."""
        self._supervisor = supervisor
        self._turn = threading.Lock()
        self._owed = 1
        """Lines that the supervisor has not written yet, of its start and of each order."""
        self._read = b""
        self._await(_END_S)

    def alive(self) -> bool:
        if self._supervisor.poll() is not None:
            return False
        # The supervisor outlives its guest to report; the guest is gone when nothing is left below it.
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{self._supervisor.pid}/task/{self._supervisor.pid}/children").read_text()
            return bool(children.strip())
        return True

    def pause(self) -> None:
        self._order(b"p", _END_S)

    def resume(self) -> None:
        self._order(b"r", _END_S)

    def output(self) -> str:
        line = self._order(b"o", _OUTPUT_S)
        if not line:
            raise SandboxUnavailable("the supervisor of a pod does not say what was written")
        return str(json.loads(line))

    def destroy(self) -> ContainerEnd:
        with self._turn:
            try:
                output, _ = self._supervisor.communicate(b"k", timeout=_END_S)
                end = json.loads(output.splitlines()[-1])  # before it may stand what was owed
            except (subprocess.TimeoutExpired, ValueError, IndexError, OSError):
                self._supervisor.kill()
                self._supervisor.wait()
                return ContainerEnd(None, oom_killed=False, log_tail="(the supervisor was killed or did not answer)")
        return ContainerEnd(int(end["exit_code"]), bool(end["out_of_memory"]), str(end["log_tail"]))

    def _order(self, letter: bytes, patience_s: float) -> bytes | None:
        """Sends an order and returns the line that answers it; None where the supervisor is gone, or hangs."""
        assert self._supervisor.stdin is not None  # noqa: S101 - opened as a pipe
        with self._turn:
            try:
                self._supervisor.stdin.write(letter)
            except (OSError, ValueError):  # it is gone, or was told to end
                return None
            self._owed += 1
            return self._await(patience_s)

    def _await(self, patience_s: float) -> bytes | None:
        """The last of the lines that are owed; those that were not there in time are read with the next."""
        assert self._supervisor.stdout is not None  # noqa: S101 - opened as a pipe
        deadline = time.monotonic() + patience_s
        while True:
            while self._owed and b"\n" in self._read:
                line, _, self._read = self._read.partition(b"\n")
                self._owed -= 1
                if not self._owed:
                    return line
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._supervisor.stdout], [], [], left_s)[0]:
                return None
            chunk = os.read(self._supervisor.stdout.fileno(), 1 << 16)
            if not chunk:
                return None
            self._read += chunk
