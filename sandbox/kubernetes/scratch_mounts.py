"""Scratch volumes as tmpfs mounts of ours, for an engine whose own volumes have no cap on inodes and no sharing."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from grader_service.errors import SandboxUnavailable
from sandbox.docker.options import scratch_flags

_MOUNT_S = 30.0


def mount_scratch(folder: Path, size_mib: int, inodes: int) -> None:
    """Mounts an empty tmpfs on `folder`, which is made.

    Raises:
        SandboxUnavailable: this process may not mount, or the kernel refused.
    """
    try:
        folder.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", scratch_flags(size_mib, inodes), "tmpfs", str(folder)],  # noqa: S607 - the image's own
            check=True,
            capture_output=True,
            text=True,
            timeout=_MOUNT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        raise SandboxUnavailable(
            f"scratch could not be mounted on {folder}: {said}; the runner must be privileged, with its state folder "
            "mounted from the host with propagation Bidirectional"
        ) from error


def unmount_below(root: Path) -> None:
    """Unmounts everything below `root`, also what a dying pod still holds: it goes when that pod does."""
    for folder in sorted(_mounts_below(root), reverse=True):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True, timeout=_MOUNT_S)  # noqa: S607


def _mounts_below(root: Path) -> Iterator[Path]:
    prefix = f"{os.path.realpath(root)}/"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        path = line.split()[4].encode().decode("unicode_escape")  # spaces are written as \040
        if path.startswith(prefix):
            yield Path(path)
