"""What every format has to know of a verdict: whether it holds a grade, and the words around it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from grader_service.exports.text import plain
from grader_service.model.base import Frozen
from grader_service.model.verdict import CheckVerdict, Mode, Outcome, Status, Verdict
from grader_service.report.changes import NOT_REACHED
from grader_service.report.formats import points, utc
from grader_service.report.words import STATUS_MEANING, STOPPED_AND_PASSED, title

_DECIDED = frozenset({Outcome.PASSED, Outcome.FAILED})
_GRADING = frozenset({Status.PASSED, Status.FAILED})
_MOST_SECONDS = 1e8
_REHEARSAL = "Rehearsal without a GPU: this is not an official grade."
_NO_SCORE = "No score: this is neither 0 points nor a grade."


@dataclass(frozen=True)
class Grade:
    """Points that may be recorded."""

    score: float
    max_score: float

    @property
    def share(self) -> float:
        """The part of all points that was earned, from 0 to 1; more points than there are count as all."""
        return min(1.0, self.score / self.max_score)


class Trace(Frozen):
    """Where an exported document came from: ids and codes, no text of anybody's."""

    submission_id: str
    verdict_id: str
    run_id: str
    lab: str
    mode: str
    status: str
    code: str
    created_at: str
    """UTC, RFC 3339."""
    graded: bool
    """False where the document holds no grade, so that nobody takes the missing score for 0."""
    submission_sha256: str | None = None
    signed_by: str | None = None
    """Id of the key in the verdict's signature; whether the signature holds is not said here."""


def grade_of(verdict: Verdict) -> Grade | None:
    """The verdict's grade; None unless it passed or failed, has a score, and every check was decided with points.

    What failed on our side, was not measured clearly or could not be measured at all is never a number of points.
    """
    if verdict.status not in _GRADING or verdict.score is None or verdict.max_score is None:
        return None
    if any(check.counted not in _DECIDED or check.score is None for check in verdict.checks if not _open_advice(check)):
        return None
    return Grade(verdict.score, verdict.max_score)


def shown(verdict: Verdict) -> tuple[CheckVerdict, ...]:
    """The checks that a learner's page shows: neither those that the lab hides, nor advice that could not be given."""
    return tuple(check for check in verdict.checks if check.visibility != "hidden" and not _open_advice(check))


def _open_advice(check: CheckVerdict) -> bool:
    return check.optional and check.counted not in _DECIDED


def summary(verdict: Verdict, grade: Grade | None, most: int) -> tuple[str, ...]:
    """The lines above the checks, for the learner, the verdict's feedback at most `most` characters long.

    The verdict's own feedback repeats that of its checks and of the run, so it is shown where there are none and for
    errors of a run that came to its end.
    """
    status = verdict.status.value.capitalize()
    if grade is None and verdict.status is Status.REJECTED:
        # Whose matter it is, the submission's or the queue's, stands in the feedback.
        lines = [f"{status}.", _NO_SCORE]
    elif grade is None:
        lines = [f"{status}. {STATUS_MEANING[verdict.status]}", _NO_SCORE]
    else:
        lines = [f"{status}: {points(grade.score)} of {points(grade.max_score)} points."]
    if verdict.passed_all_the_same:
        lines.append(STOPPED_AND_PASSED)
    if verdict.mode is Mode.REHEARSAL:
        lines.append(_REHEARSAL)
    if not verdict.checks or (verdict.status is Status.ERROR and verdict.stopped is None):
        lines.append(plain(verdict.feedback, most))
    return tuple(lines)


def name_of(check: CheckVerdict, grade: Grade | None) -> str:
    """A check as a heading; without a grade it says how it came out, as platforms mark only what has points."""
    came_out = NOT_REACHED if check.outcome is Outcome.SKIPPED else check.outcome.value
    return title(check.id) if grade is not None else f"{title(check.id)}: {came_out}"


def numbers(checks: Sequence[CheckVerdict]) -> list[str]:
    """Each check's number within its step, such as `2.1`; steps are counted as they come."""
    steps = list(dict.fromkeys(check.step for check in checks))
    seen: dict[str, int] = {}
    found = []
    for check in checks:
        seen[check.step] = seen.get(check.step, 0) + 1
        found.append(f"{steps.index(check.step) + 1}.{seen[check.step]}")
    return found


def seconds(verdict: Verdict) -> float | None:
    """Wall-clock seconds of all stages of the run together, to the millisecond; None where nothing ran.

    A sum that no run can have taken, three years or negative, is taken for unknown too.
    """
    total = sum(verdict.provenance.timings_s.values())
    return round(total, 3) if verdict.provenance.timings_s and 0 <= total < _MOST_SECONDS else None


def moment(verdict: Verdict) -> str:
    """When the verdict was made: UTC, RFC 3339; a time without a zone is taken to be UTC already."""
    return utc(verdict.created_at).isoformat(timespec="seconds").replace("+00:00", "Z")


def trace(verdict: Verdict) -> Trace:
    """The ids of a verdict."""
    return Trace(
        submission_id=verdict.submission_id,
        verdict_id=verdict.verdict_id,
        run_id=verdict.run_id,
        lab=verdict.lab,
        mode=verdict.mode.value,
        status=verdict.status.value,
        code=verdict.code,
        created_at=moment(verdict),
        graded=grade_of(verdict) is not None,
        submission_sha256=verdict.provenance.submission_sha256,
        signed_by=verdict.signature.key_id if verdict.signature is not None else None,
    )
