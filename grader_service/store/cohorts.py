"""Graded submissions, chosen by what they are and by what the verdict in force says of them."""

import functools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, case, cast, func, select

from grader_service.model.evidence import RunPlan
from grader_service.model.regrade import Selection
from grader_service.model.verdict import Outcome, Status
from grader_service.model.verdict_summary import CheckSummary, CohortEntry, RunSummary, VerdictSummary
from grader_service.store.engine import Store
from grader_service.store.submissions import handed_in_after
from grader_service.store.tables import PREFLIGHT, EvidenceRow, RunRow, SubmissionRow, VerdictRow, table_of

_AT_ONCE = 500
_CANDIDATES = 2000
"""Of what planning looks at, which is little of each."""


@dataclass(frozen=True)
class Candidate:
    """One graded submission as planning looks at it: its run, and nothing of what the verdict says."""

    submission_id: str
    lab: str
    verdict_id: str
    """Of the verdict in force."""
    run_s: float | None
    """Seconds that the run behind it took; null when it was not timed."""
    measured_by: Mapping[str, object] | None
    """As in `VerdictSummary`."""
    steps: tuple[str, ...]
    """Steps that were asked for; empty for all."""
    plan: RunPlan
    """What the run was asked to collect."""
    evidence: str | None
    """Kind of the stored evidence; null when there is none."""
    artifact_kept: bool = True
    """Whether what was handed in is still stored."""


@dataclass(frozen=True)
class CohortSummary:
    """One cohort at one lab."""

    cohort: str | None
    lab: str
    submissions: int
    learners: int
    passed: int
    newest_at: float
    """When the last submission came, seconds since 1970."""


def entries(store: Store, selection: Selection, *, size: int = _AT_ONCE) -> Iterator[CohortEntry]:
    """Graded submissions that the selection names, by submission id; `size` at a time are in memory."""
    submission = table_of(SubmissionRow).c
    wanted = _by_summary(selection)
    columns = (submission.received_at, submission.submitted_at, submission.filename)
    for row in _rows(store, _graded(selection, *columns), size):
        summary = VerdictSummary.model_validate_json(row["summary"])
        if wanted is None or wanted(summary):
            yield CohortEntry(summary, row["received_at"], row["submitted_at"], row["filename"])


def candidates(store: Store, selection: Selection, *, size: int = _CANDIDATES) -> Iterator[Candidate]:
    """The same submissions for planning; their summaries are read in full only where the selection asks of them."""
    submission, verdict = table_of(SubmissionRow).c, table_of(VerdictRow).c
    wanted = _by_summary(selection)
    columns = (
        submission.lab,
        cast(submission.steps, Text).label("steps"),
        submission.artifact_removed_at,
        verdict.verdict_id,
    )
    run, evidence = table_of(RunRow), table_of(EvidenceRow)
    statement = (
        _graded(selection, *columns, cast(run.c.plan, Text).label("plan"), evidence.c.kind)
        .join(run, run.c.run_id == verdict.run_id)
        .join(evidence, (evidence.c.run_id == verdict.run_id) & evidence.c.removed_at.is_(None), isouter=True)
    )
    for row in _rows(store, statement, size):
        told: VerdictSummary | RunSummary
        if wanted is None:
            told = RunSummary.model_validate_json(row["summary"])
        else:
            told = VerdictSummary.model_validate_json(row["summary"])
            if not wanted(told):
                continue
        yield Candidate(
            submission_id=row["submission_id"],
            lab=row["lab"],
            verdict_id=row["verdict_id"],
            run_s=told.run_s,
            measured_by=told.measured_by,
            steps=_steps(row["steps"]),
            plan=_plan(row["plan"]),
            evidence=row["kind"],
            artifact_kept=row["artifact_removed_at"] is None,
        )


@functools.lru_cache(maxsize=256)
def _steps(text: str) -> tuple[str, ...]:
    """A cohort has few different ones, so each is read once."""
    return tuple(json.loads(text))


@functools.lru_cache(maxsize=256)
def _plan(text: str) -> RunPlan:
    return RunPlan.model_validate_json(text)


def _graded(selection: Selection, *columns: ColumnElement[Any]) -> Select[Any]:
    """These columns of what the selection names, beside the id and the summary."""
    submission, verdict = table_of(SubmissionRow), table_of(VerdictRow)
    current = (verdict.c.submission_id == submission.c.submission_id) & verdict.c.current
    return (
        select(submission.c.submission_id, verdict.c.summary, *columns)
        .select_from(submission.join(verdict, current))
        .where(*_conditions(selection))
        .order_by(submission.c.submission_id)
    )


def _rows(store: Store, statement: Select[Any], size: int) -> Iterator[Mapping[Any, Any]]:
    """Its rows, page by page, so that no transaction lasts."""
    submission_id = table_of(SubmissionRow).c.submission_id
    page = statement.limit(size)
    last = ""
    while True:
        with store.transaction() as connection:
            rows = connection.execute(page.where(submission_id > last)).mappings().all()
        yield from rows
        if len(rows) < size:
            return
        last = rows[-1]["submission_id"]


def _conditions(selection: Selection) -> list[ColumnElement[bool]]:
    submission, verdict = table_of(SubmissionRow).c, table_of(VerdictRow).c
    chosen: list[tuple[Any, Collection[Any]]] = [
        (submission.cohort, selection.cohorts),
        (submission.lab, selection.labs),
        (submission.learner, selection.learners),
        (submission.submission_id, selection.submissions),
        (verdict.status, [status.value for status in selection.statuses]),
    ]
    conditions = [submission.queue != PREFLIGHT, *(column.in_(values) for column, values in chosen if values)]
    if selection.received_from is not None:
        conditions.append(submission.received_at >= selection.received_from)
    if selection.received_before is not None:
        conditions.append(submission.received_at < selection.received_before)
    if selection.latest_only:
        later = table_of(SubmissionRow).alias("later").c
        conditions.append(
            ~select(later.submission_id)
            .where(
                later.learner == submission.learner,
                later.lab == submission.lab,
                later.queue != PREFLIGHT,
                handed_in_after(later, submission),
            )
            .exists()
        )
    return conditions


def _by_summary(selection: Selection) -> Callable[[VerdictSummary], bool] | None:
    """The conditions that only a summary can answer; None where there are none."""
    if not (selection.checks or selection.codes or selection.image_digests or selection.check_versions):
        return None

    def wanted(summary: VerdictSummary) -> bool:
        codes = {summary.code, *(check.code for check in summary.checks)}
        return (
            all(
                any(one.id == check and (not outcomes or _is_one_of(one, outcomes)) for one in summary.checks)
                for check, outcomes in selection.checks.items()
            )
            and (not selection.codes or not codes.isdisjoint(selection.codes))
            and (not selection.image_digests or summary.image_digest in selection.image_digests)
            and all(
                any(one.id == check and one.version in versions for one in summary.checks)
                for check, versions in selection.check_versions.items()
            )
        )

    return wanted


def _is_one_of(check: CheckSummary, outcomes: Collection[Outcome]) -> bool:
    """By its own outcome, or by what that counts as: failures include what was not reached."""
    return check.outcome in outcomes or check.counted in outcomes


def cohorts(store: Store) -> list[CohortSummary]:
    """Every cohort at every lab, the one with the newest submission first; submissions that wait are counted too."""
    submission, verdict = table_of(SubmissionRow), table_of(VerdictRow)
    passed = case((verdict.c.status == Status.PASSED.value, 1), else_=0)
    newest = func.max(submission.c.received_at)
    statement = (
        select(
            submission.c.cohort,
            submission.c.lab,
            func.count().label("submissions"),
            func.count(submission.c.learner.distinct()).label("learners"),
            func.sum(passed).label("passed"),
            newest.label("newest_at"),
        )
        .select_from(
            submission.join(
                verdict, (verdict.c.submission_id == submission.c.submission_id) & verdict.c.current, isouter=True
            )
        )
        .where(submission.c.queue != PREFLIGHT)
        .group_by(submission.c.cohort, submission.c.lab)
        .order_by(newest.desc(), submission.c.lab)
    )
    with store.transaction() as connection:
        return [CohortSummary(**row) for row in connection.execute(statement).mappings()]


def documents(store: Store, verdict_ids: Sequence[str]) -> dict[str, str]:
    """Signed verdicts by id, byte for byte as they were written; ids that are not there are left out."""
    found: dict[str, str] = {}
    with store.transaction() as connection:
        for first in range(0, len(verdict_ids), _AT_ONCE):
            rows = connection.execute(
                select(VerdictRow.verdict_id, VerdictRow.document).where(
                    VerdictRow.verdict_id.in_(verdict_ids[first : first + _AT_ONCE])
                )
            )
            found.update({row.verdict_id: row.document for row in rows})
    return found
