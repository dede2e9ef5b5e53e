"""Where backups lie, and what each is made of.

backups/NAME/tables/TABLE.jsonl.gz   all rows, one JSON object in each line
backups/NAME/artifacts.txt.gz        digests of the artifacts that belong to it
backups/NAME/verdict-signing.pem     the private key, if it was asked for
backups/NAME/manifest.json           written last: without it the backup is not whole
artifacts/ab/abcd…                   artifacts, for all backups
answers/TIME-….jsonl.gz              the journal: every verdict, before it is sent
erasures/TIME-ID.json                notes of erasures, which a restored backup must follow
"""

import gzip
import hashlib
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Literal, cast

import structlog
from pydantic import Field, ValidationError

from grader_service.errors import ConfigurationError, GraderError, InfrastructureError, UsageError
from grader_service.model.base import Frozen
from grader_service.model.keys import KeyList
from grader_service.store.files import Files

log = structlog.get_logger(__name__)

ANSWERS = "answers"
ARTIFACTS = "artifacts"
ERASURES = "erasures"
PRIVATE_KEY = "verdict-signing.pem"
LISTED = "artifacts.txt.gz"
NEWEST = "newest"
_BACKUPS = "backups"
_MANIFEST = "manifest.json"


class SavedFile(Frozen):
    """A file of a backup."""

    sha256: str
    size_bytes: int
    lines: int
    """Rows of a table, or digests of artifacts; 0 for the key."""


class Manifest(Frozen):
    """What a backup holds."""

    schema_id: Literal["grader.backup/v1"] = Field(default="grader.backup/v1", alias="schema")
    name: str
    begun_at: float
    """By the database's clock, seconds since 1970: what was committed before is in it."""
    finished_at: float
    grader_version: str
    database_schema: str
    files: dict[str, SavedFile]
    """By their names below the backup's folder."""
    missing_artifacts: tuple[str, ...]
    """Digests of those that the artifact store did not have."""
    keys: KeyList
    """Public ones; the one in use when it was made comes first."""

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(self.files[name].lines for name in self.tables.values())

    @property
    def size_bytes(self) -> int:
        """Of its files; artifacts belong to all backups."""
        return sum(file.size_bytes for file in self.files.values())

    @property
    def tables(self) -> dict[str, str]:
        """File of each table, by its name."""
        return {name[len("tables/") : -len(".jsonl.gz")]: name for name in self.files if name.startswith("tables/")}


def file_of(table: str) -> str:
    """Name of a table's file in a backup."""
    return f"tables/{table}.jsonl.gz"


class Place:
    """Folder or bucket of backups.

    Args:
        url: such as `file:///backups` or `s3://bucket/prefix`.

    Raises:
        ConfigurationError: no such kind of address is known.
    """

    def __init__(self, url: str) -> None:
        try:
            self.files = Files(url)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(f"GRADER_BACKUP_STORE={url} cannot be used: {error}") from error

    def manifests(self) -> list[Manifest]:
        """Of the backups that are whole, oldest first.

        Raises:
            InfrastructureError: the place did not say.
        """
        with reaching(self.files.url):
            whole = [name for name in self.files.names(_BACKUPS) if self._is_whole(name)]
            found = [manifest for name in whole if (manifest := self._manifest(name)) is not None]
        return sorted(found, key=lambda one: one.begun_at)

    def manifest(self, name: str) -> Manifest:
        """That of one backup, or of the `newest`.

        Raises:
            UsageError: there is none.
            InfrastructureError: the place did not say.
        """
        found = self.manifests()
        for one in reversed(found):
            if name in (one.name, NEWEST):
                return one
        names = ", ".join(one.name for one in found[-5:]) or "none"
        raise UsageError(f"there is no whole backup {name!r} in {self.files.url}; the newest ones there: {names}")

    def _manifest(self, name: str) -> Manifest | None:
        """None where it cannot be read, which is said, and keeps nobody from the others."""
        with self.files.opened(_file(name, _MANIFEST)) as file:
            text = file.read()
        try:
            return Manifest.model_validate_json(text)
        except ValidationError as error:
            log.warning("backup_manifest_damaged", backup=name, error=str(error)[:300])
            return None

    @contextmanager
    def opened(self, backup: str, name: str) -> Iterator[IO[bytes]]:
        """A file of a backup, unpacked where it is packed."""
        with self.files.opened(_file(backup, name)) as file:
            if name.endswith(".gz"):
                with gzip.open(file, "rb") as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield file

    def save(self, backup: str, name: str, lines: Iterable[bytes]) -> SavedFile:
        """Writes a file of a backup, packed."""
        count = 0
        with self.files.written(_file(backup, name)) as file:
            counted = _Counted(file)
            with gzip.GzipFile(fileobj=counted, mode="wb", compresslevel=1, mtime=0) as packed:
                for line in lines:
                    packed.write(line)
                    count += 1
        return SavedFile(sha256=counted.hasher.hexdigest(), size_bytes=counted.size, lines=count)

    def save_key(self, backup: str, data: bytes) -> SavedFile:
        """Writes a private key into a backup."""
        self.files.put(_file(backup, PRIVATE_KEY), data)
        return SavedFile(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), lines=0)

    def finish(self, manifest: Manifest) -> None:
        """Makes a backup whole."""
        text = manifest.model_dump_json(by_alias=True, indent=2)
        self.files.put(_file(manifest.name, _MANIFEST), text.encode())

    def damaged(self, manifest: Manifest) -> list[str]:
        """Files of a backup that are gone, or not what was written.

        Raises:
            InfrastructureError: the place did not give them.
        """
        with reaching(self.files.url):
            return [
                name
                for name, saved in manifest.files.items()
                if self.digest(_file(manifest.name, name)) != saved.sha256
            ]

    def remove(self, backup: str) -> None:
        """Deletes a backup; its artifacts stay, which others may share."""
        if self._is_whole(backup):
            self.files.remove(_file(backup, _MANIFEST))  # first: half of a backup is none
        self.files.remove_folder(f"{_BACKUPS}/{backup}")

    def broken_off(self) -> list[str]:
        """Names of backups that were begun and are not whole, among them one that is being made."""
        return [name for name in self.files.names(_BACKUPS) if not self._is_whole(name)]

    def digest(self, name: str) -> str | None:
        """SHA-256 of a file, hexadecimal; None where it is not."""
        try:
            with self.files.opened(name) as file:
                return hashlib.file_digest(cast("Any", file), "sha256").hexdigest()
        except FileNotFoundError:
            return None

    def _is_whole(self, backup: str) -> bool:
        return self.files.has(_file(backup, _MANIFEST))


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Whatever its files raise becomes one infrastructure failure.

    Raises:
        InfrastructureError: the place of backups failed.
    """
    try:
        yield
    except GraderError:
        raise
    except Exception as error:
        raise InfrastructureError(f"the backup store {url} failed: {type(error).__name__}: {error}") from error


def _file(backup: str, name: str) -> str:
    return f"{_BACKUPS}/{backup}/{name}"


def stamp(seconds: float) -> str:
    """A time for names that are sorted, UTC."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def artifact_file(digest: str) -> str:
    """Name of an artifact's file, which all backups share."""
    return f"{ARTIFACTS}/{digest[:2]}/{digest}"


def fresh_name(seconds: float) -> str:
    """A name that no other backup or file of the journal has, in the order of time."""
    return f"{stamp(seconds)}-{secrets.token_hex(3)}"


class _Counted:
    """Counts what is written through it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hasher = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.hasher.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """There is nothing to do before the file is closed."""
