"""Second opinions that a model gave, so that the same answer gets the same one whenever it is judged again."""

from dataclasses import dataclass

from sqlalchemy import Connection, Select, select
from sqlalchemy.exc import IntegrityError

from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.review_tables import SecondOpinionRow
from grader_service.store.tables import RunRow, insert_into

SECOND_OPINION = "second_opinion"
"""Kind of the events; under the same name their detail says what came of it."""


@dataclass(frozen=True)
class Asked:
    """What an opinion is about, and whose it is."""

    submission_id: str
    run_id: str
    check_id: str
    subject: str
    """Digest of everything that the model is told."""
    model: str


def find(store: Store, asked: Asked) -> str | None:
    """The opinion as `keep` stored it; None where there is none.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        return connection.execute(_stored(asked)).scalar_one_or_none()


def keep(store: Store, asked: Asked, document: str, actor: str, came_of_it: str) -> str | None:
    """Keeps an opinion, JSON; returns the one that is kept, which may be that of another judge who was faster.

    Args:
        actor: who asked, for the audit trail.
        came_of_it: one word, for the figures.

    Returns:
        None where the submission was removed meanwhile, and nothing is kept.

    Raises:
        StoreUnavailable: the database failed.
    """
    row = SecondOpinionRow
    values = {
        "submission_id": asked.submission_id,
        "subject": asked.subject,
        "model": asked.model,
        "check_id": asked.check_id,
        "opinion": document,
    }
    try:
        with store.transaction() as connection:
            adding = insert_into(connection, row).values(created_at=db_now(), **values)
            connection.execute(adding.on_conflict_do_nothing())
            _record(connection, asked, actor, came_of_it)
            return connection.execute(_stored(asked)).scalar_one()
    except IntegrityError:  # it refers to no submission any more
        return None


def note_none(store: Store, asked: Asked, actor: str, why: str) -> None:
    """Notes that somebody asked and got no opinion; `why` is one word.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        _record(connection, asked, actor, why)


def _stored(asked: Asked) -> Select[str]:
    row = SecondOpinionRow
    this = row.submission_id == asked.submission_id, row.subject == asked.subject, row.model == asked.model
    return select(row.opinion).where(*this)


def _record(connection: Connection, asked: Asked, actor: str, came_of_it: str) -> None:
    if connection.execute(select(RunRow.run_id).where(RunRow.run_id == asked.run_id)).first() is None:
        return  # everything about its learner was erased
    said = {"check": asked.check_id, "model": asked.model, SECOND_OPINION: came_of_it}
    record(connection, SECOND_OPINION, actor, submission_id=asked.submission_id, run_id=asked.run_id, **said)
