"""A small file system of its own, which can be full; needs root."""

import contextlib
import errno
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

_MIB = 1 << 20
_AGAIN_S = 0.1


class Disk:
    """A mounted file system.

    Args:
        folder: where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def nearly_full(self, left: int) -> Iterator[None]:
        """So many bytes are left, until the block ends."""
        ballast = self.folder / "ballast"
        at = os.statvfs(self.folder)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, at.f_bavail * at.f_frsize - left)
        try:
            yield
        finally:
            ballast.unlink()

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Nobody gets a block of it until the block ends, also none that others free meanwhile."""
        ballast = self.folder / "ballast"
        over = threading.Event()

        def fill() -> None:
            with ballast.open("ab", buffering=0) as file:
                while not over.is_set():
                    _take_all(file.fileno())
                    over.wait(_AGAIN_S)

        with ballast.open("wb") as file:
            _take_all(file.fileno())
        thread = threading.Thread(target=fill, name="ballast", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            ballast.unlink()


@contextlib.contextmanager
def disk(name: str, mib: int) -> Iterator[Disk]:
    """An ext4 file system of so many MiB in a file, mounted while the block lasts.

    Raises:
        PermissionError: only root can mount it.
    """
    if os.geteuid() != 0:
        raise PermissionError("only root can mount the small file systems that are filled here; run this as root")
    folder = Path(tempfile.mkdtemp(prefix=f"grader-disk-{name}-", dir="/var/tmp"))
    image = folder.with_suffix(".img")
    try:
        with image.open("wb") as file:
            file.truncate(mib * _MIB)
        # Nothing is set aside for root, which would otherwise have room where a service has none.
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
        try:
            folder.chmod(0o755)
            yield Disk(folder)
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()
        image.unlink(missing_ok=True)


def _take_all(descriptor: int) -> None:
    """Every block that is free now, in pieces that become smaller."""
    end = os.fstat(descriptor).st_size
    size = 64 * _MIB
    while size >= 4096:
        try:
            os.posix_fallocate(descriptor, end, size)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size //= 4
            end = os.fstat(descriptor).st_size
        else:
            end += size
