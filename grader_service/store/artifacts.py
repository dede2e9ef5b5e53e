"""The artifacts as sent, by their digest: a local folder, or any store that fsspec knows, such as S3."""

import errno
import hashlib
import math
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

import aiohttp
import fsspec

from grader_service.errors import GraderError, InfrastructureError, SubmissionRejected
from grader_service.model.base import neutralise
from grader_service.store.away import Away, SourceAway, SourceSilent
from grader_service.store.files import Files

FRESH_S = 43_200.0
"""What was put here less than half a day ago is not removed, whether anything refers to it or not."""
_CHUNK = 1 << 20
_MAY_PASS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
"""Statuses of a web server that may pass; others between 400 and 499 come again however often one asks."""
_PATIENCE = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=30)
"""With one request to a web server, seconds: for all of it, for a connection, and while nothing comes."""


class DamagedArtifact(InfrastructureError):
    """Its bytes have another digest than they had."""


class ArtifactStore:
    """Content-addressed bytes.

    Args:
        url: where they lie: `file:///folder` or `s3://bucket/prefix`.
        sources: URL prefixes from which submissions may be fetched, such as `https://lms.example/artifacts/`; a
            message cannot make the service read anything else.
        max_bytes: largest artifact.
        max_arriving_bytes: of all that are fetched at the same time; further ones wait.
    """

    def __init__(
        self,
        url: str,
        sources: tuple[str, ...] = (),
        max_bytes: int = 256 << 20,
        max_arriving_bytes: int = 1 << 30,
    ) -> None:
        self._files = Files(url)
        self._sources = tuple(source if source.endswith("/") else f"{source}/" for source in sources)
        self._max_bytes = max_bytes
        self._away = Away()
        self._arriving = threading.BoundedSemaphore(max(1, max_arriving_bytes // max_bytes))

    @property
    def folder(self) -> Path | None:
        """Where they lie, if that is a folder of this host."""
        return self._files.folder

    def put(self, data: bytes) -> str:
        """Keeps these bytes; returns their SHA-256. Putting the same bytes twice changes nothing.

        Raises:
            InfrastructureError: the store did not take them.
        """
        digest = hashlib.sha256(data).hexdigest()
        with _ours(f"the artifact store did not take {digest}"):
            if not self._is_kept(digest):
                self._files.put(_name(digest), data)
        return digest

    def fetch(self, uri: str, sha256: str) -> int:
        """Copies an artifact from a permitted source into the store, a piece at a time; returns its size in bytes.

        Raises:
            SubmissionRejected: the source is not permitted, the bytes are too many, or not those that were announced.
            SourceAway: the source did not give them; it is asked again half a minute later at the earliest.
            InfrastructureError: the store did not take them.
        """
        if uri != self.uri_of(sha256):
            self._check_source(uri)
        with _ours(f"the artifact store did not take {sha256}"):
            if self._is_kept(sha256):
                return self._files.size(_name(sha256))
            with self._away.asking(uri), closing(_pieces_of(uri)) as pieces:
                first = next(pieces, b"")  # before others are kept waiting: a source may be long in answering
                with self._arriving, self._files.written(_name(sha256)) as target:
                    return self._copy(chain([first], pieces), target, sha256)

    def has(self, digest: str) -> bool:
        """Whether these bytes are here."""
        return self._files.has(_name(digest))

    def uri_of(self, digest: str) -> str:
        """The address under which a message may name bytes that were put here."""
        return f"{self._files.url}/{_name(digest)}"

    def copy_to(self, digest: str, target: Path) -> None:
        """Writes the bytes to a file, checked against their digest.

        Raises:
            InfrastructureError: they are missing or damaged.
        """
        try:
            with target.open("wb") as out:
                for piece in self.pieces(digest):
                    out.write(piece)
        except OSError as error:
            raise InfrastructureError(f"artifact {digest} could not be written to {target}: {error}") from error

    def pieces(self, digest: str) -> Iterator[bytes]:
        """The bytes, a piece at a time, checked against their digest at the end.

        Raises:
            InfrastructureError: they are missing or damaged; some of them may have come.
        """
        hasher = hashlib.sha256()
        with _ours(f"artifact {digest} could not be read"), self._files.opened(_name(digest)) as source:
            for piece in _read(source):
                hasher.update(piece)
                yield piece
        _require(hasher.hexdigest(), digest)

    def put_from(self, source: IO[bytes], digest: str) -> None:
        """Keeps the bytes of an open file, a piece at a time.

        Raises:
            DamagedArtifact: they have another digest; nothing was kept.
            InfrastructureError: they could not be copied; nothing was kept.
        """
        with _ours(f"artifact {digest} could not be copied"), self._files.written(_name(digest)) as target:
            found, _ = _copied(_read(source), target)
            _require(found, digest)

    def kept(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Names of files whose digests begin with these two digits, with the seconds since each was put here last.

        Raises:
            InfrastructureError: the store did not say.
        """
        # A file that is gone was removed by another judge.
        with _ours("the artifact store did not say what it has"), suppress(FileNotFoundError):
            for name in self._files.names(prefix):
                yield name, self._files.age_s(f"{prefix}/{name}")

    def remove(self, prefix: str, name: str, *, older_s: float) -> bool:
        """Deletes a file, named as by `kept`, if it is still older than this; whether it did.

        Raises:
            InfrastructureError: the store did not do it.
        """
        path = f"{prefix}/{name}"
        with _ours(f"the artifact store did not remove {name}"), suppress(FileNotFoundError):
            if self._files.age_s(path) > older_s:
                self._files.remove(path)
                return True
        return False

    def _is_kept(self, digest: str) -> bool:
        """Whether the bytes are here, and young: those that nobody refers to are removed when they are old."""
        try:
            age_s = self._files.age_s(_name(digest))
        except FileNotFoundError:
            return False
        if age_s > FRESH_S:
            self._renew(digest)
        return True

    def _renew(self, digest: str) -> None:
        name = _name(digest)
        if self._files.touch(name):
            return
        with self._arriving, self._files.opened(name) as source, self._files.written(name) as target:
            _copied(_read(source), target)

    def _copy(self, pieces: Iterable[bytes], target: IO[bytes], sha256: str) -> int:
        found, size = _copied(pieces, target, self._max_bytes)
        if found != sha256:
            # The digest that was found is not told: with it a sender could learn what lies at an address.
            raise SubmissionRejected(
                "artifact.digest_mismatch",
                "What lies at the artifact's address does not have the SHA-256 that the message says. Send it again.",
            )
        return size

    def _check_source(self, uri: str) -> None:
        if not _is_plain(uri) or not any(uri.startswith(source) for source in self._sources):
            allowed = ", ".join(self._sources) or "none: send the artifact inline"
            raise SubmissionRejected(
                "artifact.source_not_allowed",
                f"{neutralise(uri[:200])} is not below an address that this grader fetches from ({allowed}).",
            )


@contextmanager
def _ours(what: str) -> Iterator[None]:
    """Whatever goes wrong inside is an infrastructure failure, unless it says itself whose failure it is."""
    try:
        yield
    except GraderError:
        raise
    except Exception as error:
        raise InfrastructureError(f"{what}: {error}") from error


def _require(found: str, digest: str) -> None:
    if found != digest:
        raise DamagedArtifact(f"artifact {digest} is damaged: its bytes have another digest")


def _name(digest: str) -> str:
    return f"{digest[:2]}/{digest}"


class _Redirected(Exception):
    """A web server names another address."""


async def _refuse_redirect(*_: object) -> None:
    raise _Redirected


async def _client(**options: Any) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    return aiohttp.ClientSession(trace_configs=[trace], timeout=_PATIENCE, **options)


def _opened(uri: str) -> AbstractContextManager[IO[bytes]]:
    """A source, to be read; a web server cannot lead to an address that was not permitted."""
    options = {"get_client": _client} if uri.startswith(("http://", "https://")) else {}
    return cast("AbstractContextManager[IO[bytes]]", fsspec.open(uri, "rb", **options))


def _pieces_of(uri: str) -> Generator[bytes]:
    """What lies at a source, a piece at a time."""
    try:
        with _opened(uri) as source:
            yield from _read(source)
    except Exception as error:
        raise _failure(error, uri[:200]) from error


def _failure(error: Exception, uri: str) -> SubmissionRejected | SourceAway:
    """Whose failure it is that nothing could be read there."""
    # fsspec calls whatever a web server does "not found"; what it really did is the cause.
    cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ is not None else error
    if isinstance(cause, _Redirected):
        return SubmissionRejected(
            "artifact.refused",
            f"The server of the artifact leads from {uri} to another address, which is not followed: name the address "
            "where it lies.",
        )
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
    return (SourceSilent if _is_silence(cause) else SourceAway)(f"{uri} could not be fetched: {cause!r}")


def _is_silence(error: BaseException) -> bool:
    """Whether nobody answered, which is so for all that lies there."""
    kinds: list[type[Exception]] = [aiohttp.ClientConnectionError, ConnectionError, TimeoutError]
    with suppress(ImportError):
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - comes with the extra `s3`

        kinds.append(BotoCoreError)
    return isinstance(error, tuple(kinds))


def _is_plain(uri: str) -> bool:
    """Whether a prefix of this address holds for all of it: no `..`, and no user names that lend it to another host.

    Nor is what cannot be read as an address: a source would fail on it every time, as if that were our own failure.
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


def _read(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(_CHUNK):
        yield piece


def _copied(pieces: Iterable[bytes], target: IO[bytes], most: float = math.inf) -> tuple[str, int]:
    """Writes them one by one, at most so many bytes; returns the SHA-256 and the size in bytes."""
    hasher, size = hashlib.sha256(), 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise SubmissionRejected("submission.too_large", f"The artifact has more than {int(most) >> 20} MiB.")
        hasher.update(piece)
        target.write(piece)
    return hasher.hexdigest(), size
