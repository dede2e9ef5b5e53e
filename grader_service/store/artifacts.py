"""The artifacts as sent, by their digest: a local folder, or any store that fsspec knows, such as S3."""

import errno
import hashlib
import os
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fsspec

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.model.base import neutralise

_CHUNK = 1 << 20
_MAY_PASS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
"""Answers of a web server that say: later. Others between 400 and 499 come again however often one asks."""


class ArtifactStore:
    """Content-addressed bytes.

    Args:
        url: where they lie: `file:///folder` or `s3://bucket/prefix`.
        sources: URL prefixes from which submissions may be fetched, such as `https://lms.example/artifacts/`; a
            message cannot make the service read anything else.
        max_bytes: largest artifact.
    """

    def __init__(self, url: str, sources: tuple[str, ...] = (), max_bytes: int = 256 << 20) -> None:
        self._files, root = fsspec.core.url_to_fs(url)
        self._root = root.rstrip("/")
        self._url = url.rstrip("/")
        self._sources = tuple(source if source.endswith("/") else f"{source}/" for source in sources)
        self._max_bytes = max_bytes

    def put(self, data: bytes) -> str:
        """Keeps these bytes; returns their SHA-256. Putting the same bytes twice changes nothing.

        Raises:
            InfrastructureError: the store did not take them.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        try:
            if not self._files.exists(path):
                self._files.makedirs(self._files._parent(path), exist_ok=True)  # noqa: SLF001 - fsspec's own helper
                if isinstance(self._files, fsspec.implementations.local.LocalFileSystem):
                    _write_durably(Path(path), data)
                else:
                    self._files.pipe_file(path, data)
        except Exception as error:
            raise InfrastructureError(f"the artifact store did not take {digest}: {error}") from error
        return digest

    def fetch(self, uri: str, sha256: str) -> tuple[str, int]:
        """Copies an artifact from a permitted source into the store; returns its SHA-256 and size.

        Raises:
            SubmissionRejected: the source is not permitted, the bytes are too many, or not those that were announced.
            InfrastructureError: the source did not answer.
        """
        if uri != self.uri_of(sha256):
            self._check_source(uri)
        if self.has(sha256):
            return sha256, int(self._files.size(self._path(sha256)))
        try:
            with fsspec.open(uri, "rb") as source:
                data = _read_bounded(source, self._max_bytes)
        except SubmissionRejected:
            raise
        except Exception as error:
            raise _failure(error, uri[:200]) from error
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise SubmissionRejected(
                "artifact.digest_mismatch",
                f"What lies at the artifact's address has SHA-256 {found}; the message says {sha256}. Send it again.",
            )
        return self.put(data), len(data)

    def has(self, digest: str) -> bool:
        """Whether these bytes are here."""
        return bool(self._files.exists(self._path(digest)))

    def uri_of(self, digest: str) -> str:
        """The address under which a message may name bytes that were put here."""
        return f"{self._url}/{digest[:2]}/{digest}"

    def copy_to(self, digest: str, target: Path) -> None:
        """Writes the bytes to a file, checked against their digest.

        Raises:
            InfrastructureError: they are missing or damaged.
        """
        hasher = hashlib.sha256()
        try:
            with self._files.open(self._path(digest), "rb") as source, target.open("wb") as out:
                while chunk := source.read(_CHUNK):
                    hasher.update(chunk)
                    out.write(chunk)
        except Exception as error:
            raise InfrastructureError(f"artifact {digest} could not be read: {error}") from error
        if hasher.hexdigest() != digest:
            raise InfrastructureError(f"artifact {digest} is damaged: its bytes have another digest")

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}"

    def _check_source(self, uri: str) -> None:
        if not _is_plain(uri) or not any(uri.startswith(source) for source in self._sources):
            allowed = ", ".join(self._sources) or "none: send the artifact inline"
            raise SubmissionRejected(
                "artifact.source_not_allowed",
                f"{neutralise(uri[:200])} is not below an address that this grader fetches from ({allowed}).",
            )


def _failure(error: Exception, uri: str) -> SubmissionRejected | InfrastructureError:
    """Whose failure it is that nothing could be read there."""
    # fsspec calls whatever a web server does "not found"; what it really did is the cause.
    cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ is not None else error
    status = getattr(cause, "status", None)
    if (
        status == HTTPStatus.NOT_FOUND
        or isinstance(cause, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        or (isinstance(cause, OSError) and cause.errno == errno.ENAMETOOLONG)
    ):
        return SubmissionRejected("artifact.not_found", f"There is nothing at {uri}.")
    if isinstance(status, int) and 400 <= status < 500 and status not in _MAY_PASS:
        return SubmissionRejected(
            "artifact.refused",
            f"The server of the artifact answered with status {status}. Signed addresses expire: "
            "send the submission again with an address that can be read.",
        )
    return InfrastructureError(f"{uri} could not be fetched: {cause!r}")


def _is_plain(uri: str) -> bool:
    """Whether a prefix of this address holds for all of it: no `..`, and no user names that lend it to another host.

    What cannot be read as an address, or holds characters that no address has, is not plain either: a source that
    fails on it would fail every time, as if it were our own failure.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return (
        uri.isprintable()
        and ".." not in parts.path.split("/")
        and "@" not in parts.netloc
        and "\\" not in uri
        and "%2e" not in uri.lower()
        and "::" not in uri  # fsspec's sign for a file inside another one
    )


def _read_bounded(source: Any, limit: int) -> bytes:
    data = bytearray()
    while chunk := source.read(_CHUNK):
        data += chunk
        if len(data) > limit:
            raise SubmissionRejected("submission.too_large", f"The artifact has more than {limit >> 20} MiB.")
    return bytes(data)


def _write_durably(path: Path, data: bytes) -> None:
    """A reader sees all of the file or none of it, also after a power cut."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
