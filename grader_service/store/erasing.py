"""Removes everything about a learner, step by step; what is left is a count, under a digest of the learner's id."""

import base64
import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select, update

from grader_service.model.base import neutralise
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import REFUSED, record_all
from grader_service.store.opinions import SECOND_OPINION
from grader_service.store.regrade_items import hold_batches
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.removal import hold_blobs, remove_submission
from grader_service.store.retention_tables import ErasureRow
from grader_service.store.tables import DeadLetterRow, EventRow, OutboxRow, RunRow, SubmissionRow

_AT_ONCE = 20
_FIGURES = frozenset(
    {"status", "checks", "gpu_held_s", "timings_s", "fence", "state", "kind_of", "attempts", SECOND_OPINION}
)
"""What an event keeps of its details: what figures are made of."""
_PAGE = 20_000
_BODY = re.compile(rb'"body"\s*:\s*"([A-Za-z0-9+/]+)')
ERASED = "erased"


@dataclass(frozen=True)
class Erasure:
    """What was done."""

    erasure_id: str
    learner_sha256: str
    begun_at: float
    """Seconds since 1970."""
    finished_at: float
    removed: Mapping[str, int]
    """Rows by kind."""


def digest_of(learner: str) -> str:
    """What a note calls a learner: SHA-256 of the id, as it is stored, in UTF-8; hexadecimal."""
    return hashlib.sha256(neutralise(learner).encode()).hexdigest()


def submissions_of(store: Store, learner: str) -> int:
    """How many submissions of a learner are stored.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        return connection.execute(
            select(func.count()).select_from(SubmissionRow).where(SubmissionRow.learner == neutralise(learner))
        ).scalar_one()


def notes_about(store: Store, learner: str) -> list[dict[str, Any]]:
    """Notes of earlier erasures of this learner, oldest first.

    Raises:
        StoreUnavailable: the database failed.
    """
    done = ErasureRow.learner_sha256 == digest_of(learner), ErasureRow.note.is_not(None)
    with store.transaction() as connection:
        found = connection.execute(select(ErasureRow.note).where(*done).order_by(ErasureRow.begun_at)).scalars()
        return [json.loads(note) for note in found if note is not None]


def learners_with(store: Store, digest: str) -> list[str]:
    """Learners whose ids have this digest, as far as something of them is stored.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        known: set[str | None] = set(connection.execute(select(SubmissionRow.learner).distinct()).scalars())
        refused = connection.execute(select(EventRow.detail).where(EventRow.kind == REFUSED)).scalars()
        known |= {detail.get("learner") for detail in refused}
        for selection in connection.execute(select(RegradeBatchRow.selection)).scalars():
            known |= set(selection.get("learners") or ())
    return [learner for learner in known if learner is not None and digest_of(learner) == digest]


def erase(store: Store, learner: str, actor: str, noted: Callable[[Erasure], str]) -> str:
    """Removes everything about a learner. One that broke off goes on where it was.

    Runs that are under way are dropped, without an answer to the platform. Events stay for the figures, and name
    nothing of it any more. Artifacts go when the collector sees that nobody refers to them.

    Args:
        learner: their id, as the platform sends it. Ids that are stored as the same (`neutralise`) are of one learner.
        noted: makes the note, signed JSON.

    Returns:
        The note, which is kept.

    Raises:
        StoreUnavailable: the database failed; do it again.
    """
    row = _begin(store, learner)
    stored = neutralise(learner)
    while _some_submissions(store, row.erasure_id, stored):
        pass
    _refused(store, row.erasure_id, stored)
    with store.transaction() as connection:
        hold_batches(connection, [], also=_naming(connection, [stored], "learners"), read=False)
        others = Counter(
            selections=_selections(connection, [stored], "learners"), dead_letters=_dead_letters(connection, learner)
        )
        removed = _add(connection, row.erasure_id, others)
        now = connection.execute(select(db_now())).scalar_one()
        note = noted(Erasure(row.erasure_id, row.learner_sha256, row.begun_at, now, removed))
        connection.execute(update(ErasureRow).where(ErasureRow.erasure_id == row.erasure_id).values(note=note))
        record_all(connection, ERASED, actor, [(None, None, {"erasure": row.erasure_id, **removed})])
    return note


def _begin(store: Store, learner: str) -> Row[str, str, float]:
    digest = digest_of(learner)
    columns = (ErasureRow.erasure_id, ErasureRow.learner_sha256, ErasureRow.begun_at)
    open_one = select(*columns).where(ErasureRow.learner_sha256 == digest, ErasureRow.note.is_(None)).limit(1)
    with store.transaction() as connection:
        if connection.execute(open_one).first() is None:
            values = {"erasure_id": f"er-{secrets.token_hex(6)}", "learner_sha256": digest, "removed": {}}
            connection.execute(insert(ErasureRow).values(begun_at=db_now(), **values))
        return connection.execute(open_one).one()


def _some_submissions(store: Store, erasure_id: str, learner: str) -> bool:
    """Removes the next few; whether there were any."""
    with store.transaction() as connection:
        chosen = select(SubmissionRow.submission_id).where(SubmissionRow.learner == learner).limit(_AT_ONCE)
        ids = connection.execute(chosen).scalars().all()
        _hold(connection, ids)
        removed: Counter[str] = Counter(selections=_selections(connection, ids, "submissions"))
        for submission_id in ids:
            runs = select(RunRow.run_id).where(RunRow.submission_id == submission_id)
            theirs = or_(EventRow.submission_id == submission_id, EventRow.run_id.in_(runs))
            removed["events_stripped"] += _strip_events(connection, theirs)
            removed += remove_submission(connection, submission_id)
        _add(connection, erasure_id, removed)
    return bool(ids)


def _hold(connection: Connection, submission_ids: Sequence[str]) -> None:
    """Batches of re-grades, runs, submissions, graphs, until the transaction ends: in the order in which others do."""
    items = select(RegradeItemRow.id).where(RegradeItemRow.submission_id.in_(submission_ids))
    naming = _naming(connection, submission_ids, "submissions")
    hold_batches(connection, connection.execute(items).scalars().all(), also=naming, read=False)
    runs = select(RunRow.run_id).where(RunRow.submission_id.in_(submission_ids))
    submissions = select(SubmissionRow.submission_id).where(SubmissionRow.submission_id.in_(submission_ids))
    connection.execute(runs.order_by(RunRow.run_id).with_for_update())
    connection.execute(submissions.order_by(SubmissionRow.submission_id).with_for_update())
    hold_blobs(connection, RunRow.submission_id.in_(submission_ids))


def _strip_events(connection: Connection, which: ColumnElement[bool]) -> int:
    """Events name their submission no longer, and keep of their details what figures are made of."""
    events = connection.execute(select(EventRow.id, EventRow.detail).where(which)).all()
    for event in events:
        detail = {name: value for name, value in event.detail.items() if name in _FIGURES}
        connection.execute(update(EventRow).where(EventRow.id == event.id).values(submission_id=None, detail=detail))
    return len(events)


def _refused(store: Store, erasure_id: str, learner: str) -> None:
    """Removes what is left of messages of this learner that were refused, so that no submission of them is stored."""
    with store.transaction() as connection:
        newest = connection.execute(select(func.max(EventRow.id))).scalar_one() or 0
    for first in range(0, newest, _PAGE):
        # By ranges of ids: however many events there are, no statement takes long, or names more than it may.
        page = EventRow.id > first, EventRow.id <= first + _PAGE, EventRow.kind == REFUSED
        with store.transaction() as connection:
            rows = connection.execute(select(EventRow.id, EventRow.detail).where(*page))
            theirs = {row.id: row.detail for row in rows if row.detail.get("learner") == learner}
            if theirs:
                # Nothing in the details of these is a figure.
                stripped = update(EventRow).where(EventRow.id.in_(theirs)).values(submission_id=None, detail={})
                removed = Counter(answers=_refusals(connection, list(theirs.values())))
                removed["events_stripped"] = connection.execute(stripped).rowcount
                _add(connection, erasure_id, removed)


def _refusals(connection: Connection, refused: Sequence[Mapping[str, Any]]) -> int:
    """Answers with which messages were refused, given the details of the events; how many."""
    # By number and content: SQLite gives the number of the last answer again once that is removed.
    verdicts = {detail["letter"]: detail["verdict_id"] for detail in refused}
    kept = OutboxRow.id.in_(verdicts), OutboxRow.verdict_id.is_(None)
    answers = connection.execute(select(OutboxRow.id, OutboxRow.document).where(*kept))
    theirs = [row.id for row in answers if json.loads(row.document)["verdict_id"] == verdicts[row.id]]
    return connection.execute(delete(OutboxRow).where(OutboxRow.id.in_(theirs))).rowcount


def _naming(connection: Connection, gone: Sequence[str], part: str) -> dict[str, dict[str, Any]]:
    """Selections of batches that name any of these, by the batch's id."""
    every = connection.execute(select(RegradeBatchRow.batch_id, RegradeBatchRow.selection))
    return {batch_id: selection for batch_id, selection in every if set(selection.get(part) or ()) & set(gone)}


def _selections(connection: Connection, gone: Sequence[str], part: str) -> int:
    """Batches whose selection names these, and which are held, name nobody in that place; how many there were."""
    selections = _naming(connection, gone, part)  # read anew: another erasure may have had them before
    for batch_id, selection in selections.items():
        kept = {**selection, part: [ERASED if one in gone else one for one in selection[part]]}
        connection.execute(update(RegradeBatchRow).where(RegradeBatchRow.batch_id == batch_id).values(selection=kept))
    return len(selections)


def _dead_letters(connection: Connection, learner: str) -> int:
    letters = connection.execute(select(DeadLetterRow.id, DeadLetterRow.data)).all()
    theirs = [letter.id for letter in letters if names(letter.data, learner)]
    return connection.execute(delete(DeadLetterRow).where(DeadLetterRow.id.in_(theirs))).rowcount


def names(message: bytes, learner: str) -> bool:
    """Whether a message says that it is of this learner, in itself or in the encoded body of a Celery message.

    Nothing of it is parsed: a dead letter may be cut off, or made to break a parser.
    """
    texts = [message]
    if body := _BODY.search(message):
        encoded = body[1][: len(body[1]) // 4 * 4]
        texts.append(base64.b64decode(encoded))
    texts += [text.replace(b"\\\\", b"\\").replace(b'\\"', b'"') for text in texts]  # JSON as text in JSON
    written = (json.dumps(learner, ensure_ascii=plain) for plain in (True, False))
    spelled = {re.escape(text.encode(errors="surrogatepass")) for text in written}
    says = re.compile(rb'"learner"\s*:\s*(?:' + b"|".join(sorted(spelled)) + b")")
    return any(says.search(text) for text in texts)


def _add(connection: Connection, erasure_id: str, removed: Counter[str]) -> dict[str, int]:
    row = select(ErasureRow.removed).where(ErasureRow.erasure_id == erasure_id).with_for_update()
    total = Counter(connection.execute(row).scalar_one())
    total.update(removed)
    counts = {kind: number for kind, number in sorted(total.items()) if number}
    connection.execute(update(ErasureRow).where(ErasureRow.erasure_id == erasure_id).values(removed=counts))
    return counts
