"""Files in a folder of this host, or in any store that fsspec knows, such as S3."""

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, cast

import fsspec

ARRIVING = "arriving-"
"""How names of files begin that are not whole yet."""


class Files:
    """Files by name, `/` between folders. A reader sees all of a file or none of it.

    Errors are those of the file system or of the store, as they come.

    Args:
        url: where they lie: `file:///folder` or `s3://bucket/prefix`.
    """

    def __init__(self, url: str) -> None:
        # Several processes write and remove: what one of them listed is no answer for another.
        self._files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self._local = isinstance(self._files, fsspec.implementations.local.LocalFileSystem)
        self._root = root.rstrip("/")
        self.url = url.rstrip("/")

    @property
    def folder(self) -> Path | None:
        """Where they lie, if that is a folder of this host."""
        return Path(self._root) if self._local else None

    def put(self, name: str, data: bytes) -> None:
        """Writes a file."""
        if self._local:
            with self.written(name) as file:
                file.write(data)
        else:
            self._files.pipe_file(self._path(name), data)  # whole, in one request

    @contextmanager
    def written(self, name: str) -> Iterator[IO[bytes]]:
        """A file that is here when the block ends, and not at all where the block fails."""
        path = self._path(name)
        self._files.makedirs(self._files._parent(path), exist_ok=True)  # noqa: SLF001 - fsspec's own helper
        if self._local:
            with _durably(Path(path)) as file:
                yield file
            return
        file = self._files.open(path, "wb", autocommit=False)
        try:
            yield file
            file.close()
        except BaseException:
            file.discard()
            raise
        file.commit()

    def opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A file, to be read from its beginning."""
        return cast("AbstractContextManager[IO[bytes]]", self._files.open(self._path(name), "rb"))

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, files and folders, by the last part of their names, in order; none where it is not."""
        try:
            paths = self._files.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)

    def has(self, name: str) -> bool:
        """Whether it is here."""
        return bool(self._files.exists(self._path(name)))

    def size(self, name: str) -> int:
        """Bytes."""
        return int(self._files.size(self._path(name)))

    def age_s(self, name: str) -> float:
        """Seconds since it was written."""
        return float(time.time() - self._files.modified(self._path(name)).timestamp())

    def touch(self, name: str) -> bool:
        """Makes it as young as one that was just written; False where only writing it again does that."""
        if self._local:
            os.utime(self._path(name))
        return self._local

    def remove(self, name: str) -> None:
        """Deletes a file."""
        self._files.rm_file(self._path(name))

    def remove_folder(self, folder: str) -> None:
        """Deletes a folder with all that is in it."""
        self._files.rm(self._path(folder), recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


@contextmanager
def _durably(path: Path) -> Iterator[IO[bytes]]:
    """Also after a power cut it is there whole, or not at all."""
    descriptor, name = tempfile.mkstemp(prefix=ARRIVING, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if path.parent.stat().st_mode & stat.S_ISGID:  # whose files are its group's, who may read them
                os.fchmod(file.fileno(), 0o640)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Puts a folder's names on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
