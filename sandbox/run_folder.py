"""A run's folder on the host, locked by its owner, so that a sweep can tell a live run from a dead one's leftovers."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from sandbox.guest_code import install_guest_code

HIDDEN = "hidden-shards"
"""Beside the shards, for what pods shall see later: on the same file system, and in none of their mounts."""
_LOCK = "owner.lock"
_CENSUS = "runs.lock"
"""Held while a run appears and while runs are counted: a folder is never seen without its owner's lock."""
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class OwnedFolder:
    """`state_dir/runs/<name>`, which a sweep removes when the process that made it is gone."""

    def __init__(self, state_dir: Path, name: str) -> None:
        if not _RUN_ID.fullmatch(name):
            raise ValueError(f"{name!r} is not a run id: expected letters, digits, - and _")
        self.root = state_dir / "runs" / name
        self._state_dir = state_dir
        self._lock: int | None = None
        self._made = False

    def create(self) -> None:
        """Makes the folder, which only the owner may enter, and takes its lock.

        Raises:
            OSError: the state folder cannot be written to, or the folder exists; nothing of it is left.
        """
        self.root.parent.mkdir(parents=True, exist_ok=True)
        with _census(self._state_dir):
            self.root.mkdir(mode=0o700)
            self._made = True
            try:
                self._lock = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.remove()
                raise

    def remove(self) -> None:
        """Deletes everything that can be deleted and frees the lock; a folder that another one made is not touched."""
        if self._made:
            self._delete()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _delete(self) -> None:
        remove_tree(self.root)


class RunFolder(OwnedFolder):
    """Code, submission, shards, hidden shards and links of one run.

    Args:
        shared: members of our group, who may be other users, look into the folder and write to submission and shards of
            both kinds. They can replace none of these, nor anything else in it, and remove what they wrote themselves.
    """

    def __init__(self, state_dir: Path, run_id: str, *, shared: bool = False) -> None:
        super().__init__(state_dir, run_id)
        self._shared = shared
        self.code = self.root / "code"
        self.submission, self.shards, _ = leaves(self.root)

    def create(self) -> None:
        """Makes the folders as well.

        Raises:
            OSError: the state folder cannot be written to, or the run exists; nothing of it is left.
        """
        super().create()
        try:
            for folder in (self.submission, self.shards):
                self.open_folder(folder)
            install_guest_code(self.code)
            if self._shared:
                self.open_folder(self.root / HIDDEN)
                for folder in leaves(self.root):
                    folder.chmod(0o775)
                self.root.chmod(0o750)
        except BaseException:
            self.remove()
            raise

    def link(self, name: str) -> Path:
        """A fresh folder for one pod's socket; where the run is shared, its name leads nobody else there."""
        links = self.root / "links"
        links.mkdir(mode=0o700 if self._shared else 0o755, exist_ok=True)
        return self.open_folder(links / name)

    def open_folder(self, folder: Path) -> Path:
        """A folder below the root that the pod's uid may read, whatever the umask says."""
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        return folder

    def _delete(self) -> None:
        if self._shared:
            remove_own(self.root)
        else:
            super()._delete()


def remove_own(root: Path) -> bool:
    """Deletes a shared run's folder, but for what others wrote, which is never read; says whether it is gone."""
    for name in ("code", "links"):
        shutil.rmtree(root / name, ignore_errors=True)
    for remove in ((root / _LOCK).unlink, *(folder.rmdir for folder in leaves(root)), root.rmdir):
        with contextlib.suppress(OSError):
            remove()
    return not root.exists()


def leaves(root: Path) -> tuple[Path, Path, Path]:
    """The folders of a run that others may write to where it is shared: submission, shards, hidden shards."""
    return root / "submission", root / "shards", root / HIDDEN


def remove_tree(root: Path) -> bool:
    """Deletes a folder, also one in which a learner's process took rights away; says whether it is gone."""
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        for folder, names, _ in os.walk(root):
            for path in (os.path.join(folder, name) for name in names):  # noqa: PTH118 - may be a million paths
                with contextlib.suppress(OSError):
                    if not os.path.islink(path):  # noqa: PTH114
                        os.chmod(path, 0o700)  # noqa: PTH101
        shutil.rmtree(root, ignore_errors=True)
    return not root.exists()


def is_live(state_dir: Path, run_id: str) -> bool:
    """Whether some process still owns this run, or may: what cannot be examined is left alone."""
    path = state_dir / "runs" / run_id / _LOCK
    try:
        with _census(state_dir):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finally:
                os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return False


def dead_runs(state_dir: Path) -> Iterator[Path]:
    """Folders of runs that nobody owns any more."""
    runs = state_dir / "runs"
    for folder in sorted(runs.iterdir()) if runs.is_dir() else ():
        if not is_live(state_dir, folder.name):
            yield folder


@contextlib.contextmanager
def _census(state_dir: Path) -> Iterator[None]:
    descriptor = os.open(state_dir / _CENSUS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
