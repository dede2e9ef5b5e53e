"""User ids for pods: none is used by two runs of a host at the same time, since the kernel counts quotas by user.

Pipes, watches, pending signals and open queues are limited for each user, whatever container it is in.
"""

import errno
import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from grader_service.errors import SandboxUnavailable

_FIRST, _LAST = 60706, 61183
"""A range that systemd leaves unused, and below 65536: an engine with user namespaces maps no more."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_FILE = {errno.EISDIR, errno.ELOOP, errno.ENXIO}
"""Whoever may write to the folder may put a directory, a link or a socket in a lock's place: its id is not used."""


@dataclass(frozen=True)
class PodUids:
    """The ids from `first` to `last`; the lock of a file in `folder`, which all graders of a host share, takes one."""

    folder: Path = Path("/run/lock")
    first: int = _FIRST
    last: int = _LAST

    def take(self) -> "TakenUid":
        """The lowest id that nobody has; the kernel frees it when this process ends.

        Raises:
            SandboxUnavailable: every one is taken, or the folder cannot be written to.
        """
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise SandboxUnavailable(
                f"no user id for a pod can be taken: {self.folder} cannot be written to by uid {os.geteuid()}; set "
                "GRADER_LOCK_DIR to a folder that every grader of this host can write to"
            )
        strange = 0
        for uid in range(self.first, self.last + 1):
            try:
                descriptor = os.open(self.folder / f"grader-uid-{uid}.lock", _OPEN, 0o600)
            except PermissionError:
                strange += 1  # another user's grader made it, and may have it
                continue
            except OSError as error:
                if error.errno in _NO_FILE:
                    continue
                raise SandboxUnavailable(f"no user id for a pod can be taken in {self.folder}: {error}") from error
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            return TakenUid(uid, descriptor)
        raise SandboxUnavailable(
            f"every user id for pods from {self.first} to {self.last} is taken, by the locks in {self.folder}: run "
            "fewer graders on this host, or widen the range (GRADER_POD_UID_FIRST, GRADER_POD_UID_LAST)"
            + (
                f"; {strange} belong to graders of other users: remove their files grader-uid-*.lock or give each user "
                "a range of its own"
                if strange
                else ""
            )
        )


class TakenUid:
    """One id, until `free`."""

    def __init__(self, uid: int, descriptor: int) -> None:
        self.uid = uid
        self._descriptor: int | None = descriptor

    def free(self) -> None:
        """Lets others take it; again, nothing."""
        if self._descriptor is not None:
            # Closing alone leaves the lock to a process that was forked meanwhile.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None
