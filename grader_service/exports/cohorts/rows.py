"""Verdicts as rows: one for each submission of a cohort, or of a batch with both of its verdicts; pure.

Every row has the fixed columns. The checks' are named `step/check/…` and come as they are seen, because a cohort may
hold several labs, and versions of them.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter

from grader_service.exports.cohorts.cells import Cell, Columns, Row, Type, moment, text
from grader_service.model.diff import Kind
from grader_service.model.measurement import Arm
from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import CheckSummary, CohortEntry, VerdictSummary
from grader_service.regrade.filters import Paired, paired

_Cells = dict[str, tuple[Type, Callable[[VerdictSummary], Cell]]]
"""Column to its type, and what stands in it."""


def _rate_in(arm: Arm) -> Callable[[VerdictSummary], Cell]:
    return lambda summary: summary.rates[arm.value].median if arm.value in summary.rates else None


_IDS: _Cells = {name: ("text", attrgetter(name)) for name in ("submission_id", "learner", "cohort", "lab")}
_VERDICT: _Cells = {
    "status": ("text", attrgetter("status.value")),
    "code": ("text", attrgetter("code")),
    "score": ("number", attrgetter("score")),
    "max_score": ("number", attrgetter("max_score")),
    "mode": ("text", attrgetter("mode.value")),
    "verdict_id": ("text", attrgetter("verdict_id")),
    "run_id": ("text", attrgetter("run_id")),
    "lab_version": ("text", attrgetter("lab_version")),
    "graded_at": ("moment", lambda summary: moment(summary.created_at)),
    "ratio": ("number", lambda summary: summary.ratio.ratio if summary.ratio is not None else None),
    "ratio_low": ("number", lambda summary: summary.ratio.low if summary.ratio is not None else None),
    "ratio_high": ("number", lambda summary: summary.ratio.high if summary.ratio is not None else None),
    **{f"{arm.value}_images_per_s": ("number", _rate_in(arm)) for arm in Arm},
    "gpu": ("text", attrgetter("gpu")),
    "image_digest": ("text", attrgetter("image_digest")),
    "run_s": ("number", attrgetter("run_s")),
    "gpu_held_s": ("number", attrgetter("gpu_held_s")),
}


def _types(cells: _Cells, prefix: str = "") -> Columns:
    return {f"{prefix}{name}": kind for name, (kind, _) in cells.items()}


def _row(summary: VerdictSummary, cells: _Cells, prefix: str = "") -> Row:
    return {f"{prefix}{name}": cell(summary) for name, (_, cell) in cells.items()}


_CHECK = ("outcome", "score", "code")
COHORT_COLUMNS: Columns = {
    **_types(_IDS),
    "filename": "text",
    "submitted_at": "moment",
    "received_at": "moment",
    **_types(_VERDICT),
}
BATCH_COLUMNS: Columns = {
    **_types(_IDS),
    "kind": "text",
    "level": "text",
    "level_reason": "text",
    "state": "text",
    "error": "text",
    "newer": "whole",
    "repetitions": "whole",
    **_types(_VERDICT, "old_"),
    **_types(_VERDICT, "new_"),
}


def cohort_rows(entries: Iterable[CohortEntry]) -> Iterator[Row]:
    """A row for each submission of a cohort."""
    for entry in entries:
        summary = entry.summary
        yield {
            **_row(summary, _IDS),
            "filename": text(entry.filename, 200),
            "submitted_at": moment(entry.submitted_at),
            "received_at": moment(entry.received_at),
            **_row(summary, _VERDICT),
            **_checks(summary),
        }


def batch_rows(changes: Iterable[tuple[Kind, Change]]) -> Iterator[Row]:
    """A row for each submission of a batch; the columns of the new verdict are empty where there is none."""
    for kind, change in changes:
        row: Row = {
            **_row(change.old, _IDS),
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
                row |= _row(summary, _VERDICT, prefix)
        yield row | _pairs(change)


def type_of(column: str, fixed: Columns) -> Type:
    """The type of a column, be it fixed or a check's."""
    return fixed.get(column) or ("number" if column.endswith("score") else "text")


def _checks(summary: VerdictSummary) -> Row:
    return {
        f"{check.step}/{check.id}/{name}": cell
        for check in summary.checks
        for name, cell in zip(_CHECK, _cells(check), strict=True)
    }


def _pairs(change: Change) -> Row:
    """What a check was before stands beside what it is now; empty where a verdict lacks the check, or is not there."""
    alone = (((check.step, check.id), check, None) for check in change.old.checks)
    pairs: Iterable[Paired] = paired(change.old, change.new) if change.new is not None else alone
    return {
        f"{step}/{check}/{prefix}{name}": cell
        for (step, check), *both in pairs
        for name, *cells in zip(_CHECK, *map(_cells, both), strict=True)
        for prefix, cell in zip(("old_", "new_"), cells, strict=True)
    }


def _cells(check: CheckSummary | None) -> tuple[Cell, ...]:
    return (None, None, None) if check is None else (check.outcome.value, check.score, check.code)
