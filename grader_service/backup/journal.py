"""The journal of answers: each verdict, with the rows that it belongs to, is kept beside the backups before it is sent.

A restored backup takes from here what platforms were told since: no submission gets a second, different verdict.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from grader_service.backup.place import ANSWERS, ERASURES, Place, fresh_name, reaching, stamp
from grader_service.errors import ConfigurationError, InfrastructureError
from grader_service.signer.signatures import Signer
from grader_service.store import outbox
from grader_service.store.clock import db_now
from grader_service.store.engine import SCHEMA, Store
from grader_service.store.files import ARRIVING
from grader_service.store.outbox import OutboxMessage
from grader_service.store.regrade_tables import RegradeBatchRow
from grader_service.store.rows import line_of
from grader_service.store.tables import Base, EvidenceRow, RunRow, SubmissionRow, VerdictRow, key_of, table_of

_LEFT_BEHIND_S = 86_400.0
KEPT: tuple[type[Base], ...] = (SubmissionRow, RegradeBatchRow, RunRow, EvidenceRow, VerdictRow)
"""The tables of which an entry has one row each, in the order in which they refer to one another."""
_KEYS = {row.__tablename__: key_of(row).name for row in KEPT}


@dataclass(frozen=True)
class Answer:
    """A verdict that was sent, or was about to be."""

    at: float
    """By the database's clock: what it says was committed before."""
    schema: str
    rows: Mapping[str, Mapping[str, Any]]
    """Rows as lines say them, by table; of evidence all but the document."""
    sent_to: Sequence[Mapping[str, str | None]]
    """`task_id`, `reply_queue` and `reply_task` of each answer."""
    public_keys: Sequence[str]
    """Those that the judge knew as its own, hexadecimal."""


@dataclass(frozen=True)
class Erased:
    """An erasure of everything about a learner."""

    at: float
    learner_sha256: str
    note: str


class Journal:
    """Writes entries, one file for all answers that are sent together.

    Args:
        signer: whose public keys each entry names.
    """

    def __init__(self, place: Place, store: Store, signer: Signer) -> None:
        self._place = place
        self._store = store
        self._signer = signer

    def keep(self, messages: Sequence[OutboxMessage]) -> None:
        """Keeps the verdicts of these answers that are not kept yet; afterwards they may be sent.

        Raises:
            InfrastructureError: the place did not take them, or the database failed.
        """
        new = [message for message in messages if message.verdict_id is not None and not message.journaled]
        if not new:
            return
        found = self._read({str(message.verdict_id) for message in new})
        if found:
            keys = [one.public_key for one in self._signer.keys().keys]
            entries = [
                {
                    **entry,
                    "public_keys": keys,
                    "sent_to": [
                        {"task_id": one.task_id, "reply_queue": one.reply_queue, "reply_task": one.reply_task}
                        for one in new
                        if one.verdict_id == entry["rows"]["verdict"]["verdict_id"]
                    ],
                }
                for entry in found
            ]
            lines = b"".join(line_of(entry) for entry in entries)
            name = f"{ANSWERS}/{fresh_name(max(entry['at'] for entry in entries))}.jsonl.gz"
            with reaching(self._place.files.url):
                self._place.files.put(name, gzip.compress(lines, 1))
        outbox.journaled(self._store, new)

    def _read(self, verdict_ids: set[str]) -> list[dict[str, Any]]:
        submission, batch, run, evidence, verdict = (table_of(row) for row in KEPT)
        together = (
            verdict.join(submission, submission.c.submission_id == verdict.c.submission_id)
            .join(run, run.c.run_id == verdict.c.run_id)
            .join(evidence, evidence.c.run_id == run.c.run_id, isouter=True)
            .join(batch, batch.c.batch_id == verdict.c.batch_id, isouter=True)
        )
        columns = [column for row in KEPT for column in table_of(row).c if column is not evidence.c.document]
        # The clock is read with the rows: what was committed before a backup began is in it, and not looked at here.
        statement = (
            select(db_now().label("at"), *columns)
            .select_from(together)
            .where(verdict.c.verdict_id.in_(verdict_ids))
            .order_by(verdict.c.created_at, verdict.c.verdict_id)
        )
        with self._store.transaction() as connection:
            found = connection.execute(statement).all()
        return [{"at": row[0], "schema": SCHEMA, "rows": _by_table(columns, row[1:])} for row in found]


def note_erasure(place: Place, learner_sha256: str, at: float, note: str) -> None:
    """Notes that a learner was erased, so that a restored backup does not bring them back.

    Raises:
        InfrastructureError: the place did not take it.
    """
    document = {"at": at, "learner_sha256": learner_sha256, "note": note}
    with reaching(place.files.url):
        place.files.put(f"{ERASURES}/{fresh_name(at)}.json", line_of(document))


def entries(place: Place, since: float) -> Iterator[Answer | Erased]:
    """What happened after a moment, in the order of time.

    Args:
        since: seconds since 1970, by the database's clock.

    Raises:
        InfrastructureError: the place failed, or a file of it is damaged.
    """
    with reaching(place.files.url):
        names = [(name, folder) for folder in (ANSWERS, ERASURES) for name in place.files.names(folder)]
        # A file is named after its last entry; what is not whole was never sent.
        found = [one for one in names if one[0] >= stamp(since) and not one[0].startswith(ARRIVING)]
        for name, folder in sorted(found):
            with place.files.opened(f"{folder}/{name}") as file:
                data = file.read()
            try:
                some = list(_parsed(folder, data))
            except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
                raise InfrastructureError(f"{folder}/{name} in {place.files.url} is damaged: {error!r}") from error
            yield from (one for one in some if one.at >= since)


def keys_of(entries: Iterable[Answer | Erased]) -> list[str]:
    """Reads all entries before anything is made of them; the public keys that they name, hexadecimal.

    Raises:
        ConfigurationError: an entry is of a newer version of the grader.
    """
    keys: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, Answer):
            if entry.schema > SCHEMA:
                raise ConfigurationError(
                    f"the journal of answers has an entry of schema {entry.schema}, and this grader knows {SCHEMA}: "
                    "restore with the version of the grader that wrote it"
                )
            keys |= dict.fromkeys(entry.public_keys)
    return list(keys)


def forget(place: Place, before: float) -> None:
    """Removes entries that no backup needs any more.

    Args:
        before: when the oldest one that is kept was begun.

    Raises:
        InfrastructureError: the place failed.
    """
    with reaching(place.files.url):
        for folder in (ANSWERS, ERASURES):
            for name in place.files.names(folder):
                left_behind = name.startswith(ARRIVING) and place.files.age_s(f"{folder}/{name}") > _LEFT_BEHIND_S
                if name < stamp(before) or left_behind:
                    place.files.remove(f"{folder}/{name}")


def _parsed(folder: str, data: bytes) -> Iterator[Answer | Erased]:
    if folder == ERASURES:
        yield Erased(**json.loads(data))
        return
    for line in gzip.decompress(data).splitlines():
        yield Answer(**json.loads(line))


def _by_table(columns: Sequence[Any], values: Sequence[Any]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for column, value in zip(columns, values, strict=True):
        rows.setdefault(column.table.name, {})[column.name] = value
    return {name: row for name, row in rows.items() if row[_KEYS[name]] is not None}
