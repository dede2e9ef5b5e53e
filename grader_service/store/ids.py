"""Which submission, or which run, a text names: the id of either, or a beginning that fits no other."""

from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Boolean, Connection, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import ColumnElement, FunctionElement

from grader_service.errors import UsageError
from grader_service.model.base import IDENTIFIER, neutralise
from grader_service.store.engine import Store
from grader_service.store.tables import RunRow, SubmissionRow

SHORTEST = 4
"""Characters that a beginning has at least."""
MOST_NAMED = 5
"""Candidates that a message names."""
_AFTER_ALL = "~"
"""Comes after every character that an id can have."""
_SHOWN = 128


@dataclass(frozen=True)
class Named:
    """What a text names."""

    submission_id: str
    run_id: str | None = None
    """The run, where it was one of the submission's runs that was named and not the submission."""

    def __str__(self) -> str:
        of = f"run {self.run_id} of " if self.run_id is not None else ""
        return f"{of}submission {self.submission_id}"


class UnknownId(UsageError):
    """No submission and no run is called so."""

    def __init__(self, text: str) -> None:
        asked = repr(neutralise(text[:_SHOWN]))
        short = len(text) < SHORTEST
        super().__init__(
            f"no submission and no run has the id {asked}"
            + (f"; a beginning of an id has at least {SHORTEST} characters" if short else " or one that begins so")
            + ". `grader queue` lists runs that need attention, `grader cohort export` the submissions of a cohort"
        )


class AmbiguousId(UsageError):
    """Several ids begin so.

    Args:
        text: what was given.
        candidates: some of those that it fits, at least two.
    """

    def __init__(self, text: str, candidates: list[Named]) -> None:
        self.text = text
        self.candidates = candidates[:MOST_NAMED]
        self.more = len(candidates) > MOST_NAMED
        """Whether it fits others as well."""
        listed = ", ".join(map(str, self.candidates)) + (" and others" if self.more else "")
        super().__init__(f"{text!r} is the beginning of several ids: {listed}. Give more characters of one of them")


class begins(FunctionElement[bool]):  # noqa: N801 - reads as a SQL function
    """Whether an id begins with a text, which holds only what ids can hold.

    A range of ids in the order of their bytes, so that both databases find it by an index. In the order of a
    PostgreSQL database's language, what begins with the same text need not stand together: in Danish `aa` follows `z`.

    Args:
        column: submission ids or run ids.
        text: the beginning; no character of it is a wildcard.
    """

    type = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[Any] | Any, text: str) -> None:
        super().__init__(column, literal(text), literal(text + _AFTER_ALL))

    def self_group(self, against: Any = None) -> Self:
        """As it is: it brings its parentheses, and SQLite would use no index for `(…) = 1`."""
        del against
        return self


@compiles(begins, "postgresql")
def _postgresql(element: begins, compiler: Any, **options: Any) -> str:
    column, first, end = (compiler.process(part, **options) for part in element.clauses)
    return f"({column} ~>=~ {first} AND {column} ~<~ {end})"  # the operators of `text_pattern_ops`


@compiles(begins, "sqlite")
def _sqlite(element: begins, compiler: Any, **options: Any) -> str:
    column, first, end = (compiler.process(part, **options) for part in element.clauses)
    return f"({column} >= {first} AND {column} < {end})"


def may_begin(text: str) -> bool:
    """Whether a text is long enough for the beginning of an id, and holds only what ids can hold."""
    return len(text) >= SHORTEST and IDENTIFIER.fullmatch(text) is not None


def submission_named(store: Store, text: str) -> str:
    """Id of the submission that a text names, itself or by one of its runs.

    Args:
        text: the id of a submission, the id of a run, or the beginning of ids of one submission and its runs: 4
            characters or more. An id goes before what it is the beginning of, and one of a submission before a run's.

    Raises:
        UnknownId: there is none.
        AmbiguousId: it is the beginning of ids of several submissions or of their runs.
        StoreUnavailable: the database failed.
    """
    return _only(store, text, each_run=False).submission_id


def named(store: Store, text: str) -> Named:
    """The submission or the run that a text names.

    Args:
        text: as for `submission_named`; here the beginning of two runs of one submission names neither.

    Raises:
        UnknownId: there is none.
        AmbiguousId: it is the beginning of several ids.
        StoreUnavailable: the database failed.
    """
    return _only(store, text, each_run=True)


def _only(store: Store, text: str, *, each_run: bool) -> Named:
    if IDENTIFIER.fullmatch(text) is None:
        raise UnknownId(text)
    with store.transaction() as connection:
        found = _exact(connection, text) or _beginning(connection, text, each_run=each_run)
    if not found:
        raise UnknownId(text)
    if len(found) > 1:
        raise AmbiguousId(text, found)
    return found[0]


def _exact(connection: Connection, text: str) -> list[Named]:
    submission = select(SubmissionRow.submission_id).where(SubmissionRow.submission_id == text)
    if connection.execute(submission).first() is not None:
        return [Named(text)]
    run = select(RunRow.submission_id).where(RunRow.run_id == text)
    return [Named(submission_id, text) for submission_id in connection.execute(run).scalars()]


def _beginning(connection: Connection, text: str, *, each_run: bool) -> list[Named]:
    """Submissions and runs that begin so, of either at most one more than a message names.

    Unless `each_run` counts by itself, a run stands for its submission, and one run will do.
    """
    if len(text) < SHORTEST:
        return []
    submissions = select(SubmissionRow.submission_id).where(begins(SubmissionRow.submission_id, text))
    found = [
        Named(submission_id)
        for submission_id in connection.execute(
            submissions.order_by(SubmissionRow.submission_id).limit(MOST_NAMED + 1)
        ).scalars()
    ]
    run_id = RunRow.run_id if each_run else func.min(RunRow.run_id)
    runs = select(RunRow.submission_id, run_id.label("run_id")).where(begins(RunRow.run_id, text))
    if not each_run:
        runs = runs.where(RunRow.submission_id.not_in([one.submission_id for one in found]))
        runs = runs.group_by(RunRow.submission_id)
    rows = connection.execute(runs.order_by(RunRow.submission_id, run_id).limit(MOST_NAMED + 1))
    return found + [Named(row.submission_id, row.run_id) for row in rows]
