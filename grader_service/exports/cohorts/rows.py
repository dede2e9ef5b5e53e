"""Verdicts as rows: one for each submission of a cohort, or of a batch with both of its verdicts; pure.

Every row has the fixed columns. The checks' are named `step/check/…` and come as they are seen, because a cohort may
hold several labs, and versions of them.
"""

from collections.abc import Iterable, Iterator

from grader_service.exports.cohorts.cells import Cell, Columns, Row, Type, moment, text
from grader_service.model.diff import Kind
from grader_service.model.measurement import Arm
from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import CheckSummary, CohortEntry, VerdictSummary
from grader_service.regrade.filters import Paired, paired

_VERDICT: Columns = {
    "status": "text",
    "code": "text",
    "score": "number",
    "max_score": "number",
    "mode": "text",
    "verdict_id": "text",
    "run_id": "text",
    "lab_version": "text",
    "graded_at": "moment",
    "ratio": "number",
    "ratio_low": "number",
    "ratio_high": "number",
    **dict.fromkeys((f"{arm.value}_images_per_s" for arm in Arm), "number"),
    "gpu": "text",
    "image_digest": "text",
    "run_s": "number",
    "gpu_held_s": "number",
}
_CHECK = ("outcome", "score", "code")
COHORT_COLUMNS: Columns = {
    "submission_id": "text",
    "learner": "text",
    "cohort": "text",
    "lab": "text",
    "filename": "text",
    "submitted_at": "moment",
    "received_at": "moment",
    **_VERDICT,
}
BATCH_COLUMNS: Columns = {
    "submission_id": "text",
    "learner": "text",
    "cohort": "text",
    "lab": "text",
    "kind": "text",
    "level": "text",
    "level_reason": "text",
    "state": "text",
    "error": "text",
    "newer": "whole",
    "repetitions": "whole",
    **{f"old_{name}": kind for name, kind in _VERDICT.items()},
    **{f"new_{name}": kind for name, kind in _VERDICT.items()},
}


def cohort_rows(entries: Iterable[CohortEntry]) -> Iterator[Row]:
    """A row for each submission of a cohort."""
    for entry in entries:
        summary = entry.summary
        yield {
            **_ids(summary),
            "filename": text(entry.filename, 200),
            "submitted_at": moment(entry.submitted_at),
            "received_at": moment(entry.received_at),
            **_verdict(summary),
            **_checks(summary),
        }


def batch_rows(changes: Iterable[tuple[Kind, Change]]) -> Iterator[Row]:
    """A row for each submission of a batch; the columns of the new verdict are empty where there is none."""
    for kind, change in changes:
        row: Row = {
            **_ids(change.old),
            "submission_id": change.submission_id,
            "kind": kind.value,
            "level": change.level.value,
            "level_reason": change.reason,
            "state": change.state.value,
            "error": text(change.error) or None,
            "newer": change.newer,
            "repetitions": max(len(change.repeats), int(change.new is not None)),
        }
        for prefix, summary in (("old_", change.old), ("new_", change.new)):
            if summary is not None:
                row |= {f"{prefix}{name}": cell for name, cell in _verdict(summary).items()}
        yield row | _pairs(change)


def type_of(column: str, fixed: Columns) -> Type:
    """The type of a column, be it fixed or a check's."""
    return fixed.get(column) or ("number" if column.endswith("score") else "text")


def _ids(summary: VerdictSummary) -> Row:
    return {
        "submission_id": summary.submission_id,
        "learner": summary.learner,
        "cohort": summary.cohort,
        "lab": summary.lab,
    }


def _verdict(summary: VerdictSummary) -> Row:
    ratio = summary.ratio
    row: Row = {
        "status": summary.status.value,
        "code": summary.code,
        "score": summary.score,
        "max_score": summary.max_score,
        "mode": summary.mode.value,
        "verdict_id": summary.verdict_id,
        "run_id": summary.run_id,
        "lab_version": summary.lab_version,
        "graded_at": moment(summary.created_at),
        "ratio": ratio.ratio if ratio is not None else None,
        "ratio_low": ratio.low if ratio is not None else None,
        "ratio_high": ratio.high if ratio is not None else None,
    }
    for arm in Arm:
        rate = summary.rates.get(arm.value)
        row[f"{arm.value}_images_per_s"] = rate.median if rate is not None else None
    return row | {name: getattr(summary, name) for name in ("gpu", "image_digest", "run_s", "gpu_held_s")}


def _checks(summary: VerdictSummary) -> Row:
    return {
        f"{check.step}/{check.id}/{name}": cell
        for check in summary.checks
        for name, cell in zip(_CHECK, _cells(check), strict=True)
    }


def _pairs(change: Change) -> Row:
    """What a check was before stands beside what it is now; empty where a verdict lacks the check, or is not there."""
    pairs: Iterable[Paired] = paired(change.old, change.new) if change.new is not None else _alone(change.old)
    return {
        f"{step}/{check}/{prefix}{name}": cell
        for (step, check), *both in pairs
        for name, *cells in zip(_CHECK, *map(_cells, both), strict=True)
        for prefix, cell in zip(("old_", "new_"), cells, strict=True)
    }


def _alone(old: VerdictSummary) -> Iterator[Paired]:
    return (((check.step, check.id), check, None) for check in old.checks)


def _cells(check: CheckSummary | None) -> tuple[Cell, ...]:
    return (None, None, None) if check is None else (check.outcome.value, check.score, check.code)
