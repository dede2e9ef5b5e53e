"""Short ways to sockets and folders, where paths are longer than the kernel takes for a socket.

Workers of a DataLoader talk through sockets in TMPDIR. In a folder whose path is too long they wait for ever.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES = 107
"""Of a Unix socket's path, as `man 7 unix` has it without the NUL."""
BELOW_BYTES = len("/tmp-99/pymp-12345678/listener-12345678")  # noqa: S108 - only its length
"""What a pod's TMPDIR and Python's `multiprocessing` put behind the folder."""
_LINKS = Path("/tmp")  # noqa: S108 - short on every host, and a link says nothing
_PREFIX = "grader-run-"


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address of this socket, short enough whatever its path; through its folder's descriptor, while that is open.

    Raises:
        OSError: the folder cannot be opened.
    """
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)


class ShortPath:
    """The folder itself where its path is short enough, else a link to it that goes with the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        fits = len(os.fsencode(folder)) + BELOW_BYTES <= MOST_BYTES
        self._link = None if fits else _LINKS / f"{_PREFIX}{secrets.token_hex(8)}"
        self.path = self._link or folder

    def make(self) -> None:
        """Makes the link where one is needed.

        Raises:
            OSError: it cannot be made.
        """
        if self._link is not None:
            self._link.symlink_to(self._folder)

    def remove(self) -> None:
        """Removes the link."""
        if self._link is not None:
            self._link.unlink(missing_ok=True)


def sweep_links() -> None:
    """Removes links of ours whose folders are gone."""
    for link in _LINKS.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if link.is_symlink() and not link.exists() and link.lstat().st_uid == os.geteuid():
                link.unlink()
