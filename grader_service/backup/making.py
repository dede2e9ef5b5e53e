"""Makes backups: all rows as they are at one moment, and the artifacts that belong to them."""

import itertools
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from grader_service import __version__
from grader_service.backup import journal
from grader_service.backup.place import (
    ARTIFACTS,
    LISTED,
    PRIVATE_KEY,
    Manifest,
    Place,
    SavedFile,
    artifact_file,
    file_of,
    fresh_name,
    reaching,
)
from grader_service.errors import InfrastructureError
from grader_service.signer.signatures import Signer
from grader_service.store import backups, rows
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store, schema_of
from grader_service.store.references import referred

log = structlog.get_logger(__name__)

_PREFIXES = [first + second for first, second in itertools.product(string.hexdigits[:16], repeat=2)]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class What:
    """What a backup is made of."""

    store: Store
    signer: Signer
    artifacts: ArtifactStore | None
    """None leaves them out: where their store has backups of its own."""
    private_key: bytes | None = None
    """Taken along, in PEM form."""


def make(place: Place, what: What, progress: Progress = lambda _: None) -> Manifest:
    """Makes a backup, within `backups.alone`. While it is made the service goes on working.

    Raises:
        InfrastructureError: the place, the database or the artifact store failed; what was begun is removed by a later
            `prune`.
    """
    keys = what.signer.keys()
    begun_at = backups.now(what.store)  # before the snapshot: what was committed until now is in it
    name = fresh_name(begun_at)
    files: dict[str, SavedFile] = {}
    with reaching(place.files.url):
        with what.store.snapshot() as connection:
            schema = schema_of(connection) or ""  # the database may be migrated while this goes on
            for table in rows.tables(connection):
                progress(f"table {table.name}")
                files[file_of(table.name)] = place.save(name, file_of(table.name), rows.lines(connection, table))
            digests = sorted(referred(connection))
        missing: list[str] = []
        if what.artifacts is not None:
            progress(f"artifacts: {len(digests)}")
            missing = _copy(place, what.artifacts, digests)
            kept = (f"{digest}\n".encode() for digest in digests)
            files[LISTED] = place.save(name, LISTED, kept)
        if what.private_key is not None:
            files[PRIVATE_KEY] = place.save_key(name, what.private_key)
        manifest = Manifest(
            name=name,
            begun_at=begun_at,
            finished_at=backups.now(what.store),
            grader_version=__version__,
            database_schema=schema,
            files=files,
            missing_artifacts=tuple(missing),
            keys=keys,
        )
        place.finish(manifest)
    backups.made(what.store, name, begun_at)
    log.info("backup_made", name=name, rows=manifest.rows, missing=len(missing))
    return manifest


def prune(place: Place, keep: int) -> list[str]:
    """Removes all but the newest backups, and what none of these needs, within `backups.alone`; returns their names.

    Raises:
        InfrastructureError: the place failed.
    """
    whole = place.manifests()
    kept, old = whole[-keep:], whole[:-keep]
    with reaching(place.files.url):
        gone = [one.name for one in old]
        if kept:
            gone += [name for name in place.broken_off() if name < kept[-1].name]
        for name in gone:
            place.remove(name)
        if kept:
            journal.forget(place, kept[0].begun_at)  # after the backups that need what goes
        needed = {digest for one in kept for digest in digests_of(place, one)}
        for prefix in _PREFIXES if old else ():
            for digest in place.files.names(f"{ARTIFACTS}/{prefix}"):
                if digest not in needed:
                    place.files.remove(artifact_file(digest))
    return gone


def digests_of(place: Place, manifest: Manifest) -> Iterator[str]:
    """Those of the artifacts that belong to a backup."""
    if LISTED in manifest.files:
        with place.opened(manifest.name, LISTED) as file:
            yield from (line.decode().strip() for line in file)


def _copy(place: Place, artifacts: ArtifactStore, digests: list[str]) -> list[str]:
    """Those that no backup has yet; returns the digests of those that the artifact store could not give."""
    there = {digest for prefix in _PREFIXES for digest in place.files.names(f"{ARTIFACTS}/{prefix}")}
    missing = []
    for digest in digests:
        if digest in there:
            continue
        try:
            with place.files.written(artifact_file(digest)) as target:
                for piece in artifacts.pieces(digest):
                    target.write(piece)
        except InfrastructureError as error:  # of the artifact store; what the place fails with is none
            log.warning("artifact_not_saved", digest=digest, error=str(error))
            missing.append(digest)
    return missing
