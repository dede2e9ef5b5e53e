"""Restores a backup into an empty database, and what platforms were told since."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from grader_service.backup import verifying
from grader_service.backup.adopting import Adopted, adopt
from grader_service.backup.journal import entries, keys_of
from grader_service.backup.place import LISTED, PRIVATE_KEY, Manifest, Place, artifact_file, reaching
from grader_service.backup.verifying import Checked
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.model.keys import KeyList, PublicKey
from grader_service.signer import key_folder
from grader_service.signer.signatures import Signer
from grader_service.store import references, roles, rows, workers
from grader_service.store.artifacts import ArtifactStore, DamagedArtifact
from grader_service.store.clock import db_now
from grader_service.store.engine import SCHEMA, Store, require_migratable
from grader_service.store.events import record
from grader_service.store.tables import Base, EventRow, SubmissionRow, WorkerRow, table_of

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Where:
    """Into what a backup is restored."""

    store: Store
    keys: Path | Signer
    """The folder of the signing keys, which takes those of the backup; or who has them, whom an operator tells."""
    artifacts: ArtifactStore
    actor: str


@dataclass(frozen=True)
class Restored:
    """What came of it."""

    rows: int
    adopted: Adopted
    checked: Checked
    artifacts: int
    """Copied back."""
    lost_artifacts: tuple[str, ...]
    """Digests of those that neither the backups nor the artifact store have, or that are damaged.

    Their submissions say so from now on.
    """
    private_key: bool
    """Whether the key of the backup was put in place, to sign on with."""
    unknown_keys: tuple[str, ...]
    """Public keys of the backup and the journal that this service does not know as its own, hexadecimal."""


def restore(place: Place, manifest: Manifest, where: Where, *, replace: bool, progress: Progress) -> Restored:
    """Restores a backup. Workers are started afterwards.

    Args:
        replace: delete what the database holds; else one that holds anything is refused.

    Raises:
        UsageError: the database is in use or not empty.
        ConfigurationError: the backup or the journal is of a newer version of the grader, or the backup of one that was
            never released, or the store is not opened as the owner of its tables.
        InfrastructureError: the backup is damaged, or its place, the database or the artifact store failed; what was
            restored so far is not whole: do it again with `replace`.
    """
    roles.require_owner(where.store)
    if manifest.database_schema > SCHEMA:
        raise ConfigurationError(
            f"the backup {manifest.name} has schema {manifest.database_schema}, and this grader knows {SCHEMA}: "
            f"install the version that made it, {manifest.grader_version}, or a newer one"
        )
    require_migratable(manifest.database_schema, f"the backup {manifest.name}")
    progress("files of the backup")
    if damaged := place.damaged(manifest):
        raise InfrastructureError(
            f"the backup {manifest.name} is damaged: {', '.join(damaged)} cannot be used; restore an older one "
            "(`grader backup list`)"
        )
    _require_known_columns(place, manifest)
    _require_unused(where.store, replace=replace)
    # Read once before anything is touched: what is damaged, or of a newer version, is told now.
    keys = saved_keys(place, manifest)
    private_key = isinstance(where.keys, Path) and _put_keys(place, manifest, where.keys, keys)
    known = {one.public_key for one in _known(where.keys).keys}
    count = _fill(place, manifest, where.store, progress)
    progress("answers since")
    adopted = adopt(where.store, entries(place, manifest.begun_at), where.actor)
    progress("artifacts")
    copied, lost = _copy_back(place, manifest, where)
    progress("signatures")
    theirs = [one.public_key for one in keys.keys]
    checked = verifying.check(where.store, known.union(theirs))
    with where.store.transaction() as connection:
        record(connection, "restored", where.actor, backup=manifest.name, adopted=adopted.verdicts)
    unknown = tuple(key for key in theirs if key not in known)
    return Restored(count, adopted, checked, copied, lost, private_key, unknown)


def _known(keys: Path | Signer) -> KeyList:
    return key_folder.key_list(keys) if isinstance(keys, Path) else keys.keys()


def saved_keys(place: Place, manifest: Manifest) -> KeyList:
    """Public keys of a backup, and of the journal of answers since.

    Raises:
        ConfigurationError: an entry of the journal is of a newer version of the grader.
        InfrastructureError: the place did not give it.
    """
    keys = manifest.keys
    for name in keys_of(entries(place, manifest.begun_at)):
        if keys.get(name) is None:
            keys = keys.with_key(PublicKey(public_key=name))
    return keys


def _require_known_columns(place: Place, manifest: Manifest) -> None:
    """Refuses rows that do not fit this version's tables: databases that were never released share its schema's number.

    Rows of an older schema are left to the migrations, which make their tables.
    """
    if manifest.database_schema != SCHEMA:
        return
    for name, file in manifest.tables.items():
        with reaching(place.files.url), place.opened(manifest.name, file) as lines:
            first = lines.readline()
        known = Base.metadata.tables[name].columns.keys() if name in Base.metadata.tables else ()
        if first and (other := sorted(set(json.loads(first)) ^ set(known))):
            raise ConfigurationError(
                f"the backup {manifest.name} is of a database that was never released: in schema {SCHEMA} the table "
                f"{name} differs in {', '.join(other)}; restore it with the version that made it"
            )


def _require_unused(store: Store, *, replace: bool) -> None:
    with store.transaction() as connection:
        there = rows.there(connection)
        if WorkerRow.__tablename__ in there:
            seen = select(WorkerRow.worker_id).where(WorkerRow.seen_at > db_now() - workers.SILENT_S)
            if heard := connection.execute(seen).scalars().all():
                raise UsageError(f"workers are at work on this database: {', '.join(heard)}; stop them first")
        content = [table for table in (SubmissionRow, EventRow) if table.__tablename__ in there]
        used = any(connection.execute(select(table_of(table).c[0]).limit(1)).first() for table in content)
    if used and not replace:
        raise UsageError(
            f"the database {store.engine.url.render_as_string()} is not empty; restore into an empty one, or give "
            "--replace, which deletes all that it holds"
        )


def _fill(place: Place, manifest: Manifest, store: Store, progress: Progress) -> int:
    """Makes the database what the backup saw, then brings it to this version's schema; the number of rows."""
    with store.transaction() as connection:
        rows.drop_all(connection)
    store.migrate(manifest.database_schema)
    saved, count = manifest.tables, 0
    with store.transaction() as connection:
        if not store.is_sqlite:
            connection.exec_driver_sql("set local statement_timeout = 0")
        for table in rows.tables(connection):
            progress(f"table {table.name}")
            if table.name in saved:
                connection.execute(table.delete())  # a migration may have put rows there
                with reaching(place.files.url), place.opened(manifest.name, saved[table.name]) as file:
                    count += rows.fill(connection, table, file)
    store.migrate()
    return count


def _put_keys(place: Place, manifest: Manifest, key_dir: Path, keys: KeyList) -> bool:
    """Verdicts of these keys verify from now on; whether its private key is in use again."""
    put = PRIVATE_KEY in manifest.files and not key_folder.has_key(key_dir)
    if set(keys.keys) - set(key_folder.key_list(key_dir).keys):  # the folder may be one that cannot be written to
        key_folder.add(key_dir, keys)
    if put:
        with reaching(place.files.url), place.opened(manifest.name, PRIVATE_KEY) as file:
            data = file.read()
        key_folder.make(key_dir, data)
    return put


def _copy_back(place: Place, manifest: Manifest, where: Where) -> tuple[int, tuple[str, ...]]:
    """Artifacts to which something refers, what was taken over from the journal included: how many, and those lost."""
    if LISTED not in manifest.files:
        return 0, ()  # their store is safe by itself, and may come back later
    with where.store.snapshot() as connection:
        needed = sorted(references.referred(connection))
    copied, lost = 0, []
    with reaching(place.files.url):
        for digest in needed:
            if where.artifacts.has(digest):
                continue
            try:
                with place.files.opened(artifact_file(digest)) as source:
                    where.artifacts.put_from(source, digest)
                copied += 1
            except (FileNotFoundError, DamagedArtifact):
                lost.append(digest)
    references.lost(where.store, lost)
    return copied, tuple(lost)
