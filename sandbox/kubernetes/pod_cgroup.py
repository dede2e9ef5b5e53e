"""A container's control group on its host: what the Kubernetes API cannot say is written here.

Freezing, killing at once, a number of processes, a set of CPUs. Both layouts are known: one tree (version 2), or one
for each controller (version 1).
"""

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader_service.errors import SandboxUnavailable

CGROUP_ROOT = Path("/sys/fs/cgroup")
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
_CONTROLLERS = ("freezer", "pids", "cpuset")
_DEPTH = 7
"""Levels that are searched: kubepods, quality of service, pod, container, with some to spare."""
_FREEZE_S = 10.0
_POLL_S = 0.01


class PodCgroup:
    """The control group of one container.

    Args:
        container_id: 64 hexadecimal digits; nothing else is ever written to or killed.
        root: the host's control groups.

    Raises:
        SandboxUnavailable: the group is not below `root`, or the id is none.
    """

    def __init__(self, container_id: str, root: Path = CGROUP_ROOT) -> None:
        if not _CONTAINER_ID.fullmatch(container_id):
            raise SandboxUnavailable(f"expected a container id of 64 hexadecimal digits, got {container_id!r}")
        self._unified = (root / "cgroup.controllers").exists()
        trees = {"": root} if self._unified else {name: root / name for name in _CONTROLLERS}
        self._folders: dict[str, Path] = {}
        for name, tree in trees.items():
            found = _find(tree, container_id)
            if found is None:
                raise SandboxUnavailable(
                    f"expected the control group of container {container_id[:12]} below {tree}, found none; "
                    "mount the host's /sys/fs/cgroup into the runner at the same path, writable"
                )
            self._folders[name] = found

    def limit(self, pids: int, cpus: Sequence[int]) -> None:
        """Caps the number of processes and fixes the CPUs of all of them, also of those that run already.

        Raises:
            SandboxUnavailable: the kernel refused.
        """
        self._write("pids", "pids.max", str(pids))
        self._write("cpuset", "cpuset.cpus", ",".join(map(str, cpus)))

    def freeze(self) -> None:
        """Stops every process; returns when all of them stand.

        Raises:
            SandboxUnavailable: they did not within ten seconds; they run again.
        """
        deadline = time.monotonic() + _FREEZE_S
        while True:
            # Version 1 must be told again while processes appear.
            self._write("freezer", *(("cgroup.freeze", "1") if self._unified else ("freezer.state", "FROZEN")))
            if self.frozen():
                return
            if time.monotonic() > deadline:
                self.thaw()
                raise SandboxUnavailable(
                    f"a pod's processes did not stand still within {_FREEZE_S:g} s; look at the host"
                )
            time.sleep(_POLL_S)

    def frozen(self) -> bool:
        """Whether every process stands still."""
        if self._unified:
            return "frozen 1" in self._read("freezer", "cgroup.events")
        return self._read("freezer", "freezer.state").strip() == "FROZEN"

    def thaw(self) -> None:
        """Lets every process run again; a group that is gone has none."""
        self._write(
            "freezer", *(("cgroup.freeze", "0") if self._unified else ("freezer.state", "THAWED")), gone_is_fine=True
        )

    def kill(self) -> bool:
        """Kills every process at once, frozen or not; says whether the group is empty now.

        Version 1 has no such order: processes are frozen, told one by one, and thawed. Those in a process namespace
        that the caller does not see stay, and False is returned: the kubelet ends them.
        """
        with contextlib.suppress(SandboxUnavailable, OSError):
            if self._unified:
                self._write("", "cgroup.kill", "1", gone_is_fine=True)
            else:
                self._kill_one_by_one()
        with contextlib.suppress(SandboxUnavailable):
            self.thaw()
        deadline = time.monotonic() + 2.0
        while not (empty := self.empty()) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        return empty

    def empty(self) -> bool:
        """Whether no process is left."""
        try:
            return not self._read("freezer", "cgroup.procs").strip()
        except SandboxUnavailable:
            return True  # the group is gone

    def _kill_one_by_one(self) -> None:
        self.freeze()  # or a process that forks would escape
        for line in self._read("freezer", "cgroup.procs").split():
            if int(line) > 0:  # 0: not in our process namespace
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line), signal.SIGKILL)

    def _folder(self, controller: str) -> Path:
        return self._folders["" if self._unified else controller]

    def _read(self, controller: str, name: str) -> str:
        path = self._folder(controller) / name
        try:
            return path.read_text()
        except OSError as error:
            raise SandboxUnavailable(f"a pod's control group cannot be read: {error}") from error

    def _write(self, controller: str, name: str, value: str, *, gone_is_fine: bool = False) -> None:
        path = self._folder(controller) / name
        try:
            path.write_text(value)
        except FileNotFoundError as error:
            if not gone_is_fine:
                raise SandboxUnavailable(f"a pod's control group is gone: {error}") from error
        except OSError as error:
            if not (gone_is_fine and not path.exists()):
                raise SandboxUnavailable(
                    f"{path} does not take {value!r}: {error}; the runner must own the host's control groups "
                    "and the CPUs must be the host's"
                ) from error


def _find(tree: Path, container_id: str) -> Path | None:
    """The folder named after the container (`<id>`, `cri-containerd-<id>.scope`, `crio-<id>.scope`)."""
    return next((folder for folder in _folders(tree, _DEPTH) if container_id in folder.name), None)


def _folders(tree: Path, depth: int) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # groups come and go
        below = [Path(entry.path) for entry in os.scandir(tree) if entry.is_dir(follow_symlinks=False)]
        yield from below
        if depth > 1:
            for folder in below:
                yield from _folders(folder, depth - 1)
