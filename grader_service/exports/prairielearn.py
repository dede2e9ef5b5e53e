"""PrairieLearn's `results.json`: those of its published fields that we write, as strict models, and a verdict in them.

Fields are those of "External Grading", section "Grading results", and of the element `pl-external-grader-results`.
A result that is not gradable gives and takes no points and costs no attempt, which is what PrairieLearn has for
everything that is no grade. Such a result has no `score` key at all: the element multiplies what it finds there.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from grader_service.exports.grades import Grade, Trace, grade_of, name_of, shown, summary, trace
from grader_service.exports.parts import as_text, cut, log_of, of_check, of_run
from grader_service.model.base import Fraction, Frozen
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import CheckVerdict, Verdict
from grader_service.report.once import told_once

MOST_BYTES = 1_000_000
"""The documented 1 MB; PrairieLearn's own grader host draws the line at 1,048,576 bytes."""
_TEXT_LENGTHS = (8192, 2048, 512, 128)


class PrairieLearnTest(Frozen):
    """One entry of `tests`."""

    name: str | None = None
    description: str | None = None
    points: float | None = None
    """Earned; absent where the check could not decide."""
    max_points: Annotated[float, Field(ge=0)] | None = None
    message: str | None = None
    """The check's feedback as plain text."""


class PrairieLearnResults(Frozen):
    """The whole document."""

    gradable: bool = True
    score: Fraction | None = None
    """Of the points that can be earned."""
    format_errors: str | tuple[str, ...] | None = None
    """What was found, in place of `message` where the result is not gradable."""
    message: str | None = None
    """The summary, above the tests."""
    output: str | None = None
    """The learner's source and traceback, then what the code printed."""
    tests: tuple[PrairieLearnTest, ...] | None = None
    grader: Trace | None = None
    """Ours: any further key is allowed and kept."""

    @model_validator(mode="after")
    def _score_and_errors_fit(self) -> Self:
        if self.gradable and self.score is None:
            raise ValueError("a gradable result needs a score")
        if not self.gradable and self.score is not None:
            raise ValueError("a result that is not gradable has no score")
        if self.gradable and self.format_errors:
            raise ValueError("format errors belong to a result that is not gradable")
        return self


def prairielearn(verdict: Verdict) -> PrairieLearnResults:
    """The verdict for PrairieLearn, within its size limit: long texts are cut first, then the checks are left out."""
    for most in _TEXT_LENGTHS:
        results = _results(verdict, shown(verdict), most)
        if len(results.model_dump_json(indent=2, exclude_none=True).encode()) < MOST_BYTES:
            return results
    return _results(verdict, (), _TEXT_LENGTHS[-1])


def _results(verdict: Verdict, checks: tuple[CheckVerdict, ...], most: int) -> PrairieLearnResults:
    grade, run = grade_of(verdict), verdict.stopped
    lines = summary(verdict, grade, most)
    output = None
    if run is not None:
        # A line each, as every format error is an entry of a list; source and traceback stand where breaks are kept.
        pieces = list(of_run(run))
        lines = (*(as_text(cut([piece], most)) for piece in pieces if piece.text and piece.kind != "lines"), *lines)
        source = (piece for piece in pieces if piece.kind == "lines")
        output = as_text(cut((*source, *log_of(run)), most)) or None
    if len(checks) < len(shown(verdict)):
        lines = (*lines, f"The {len(shown(verdict))} checks are too many to be shown here.")
    page = told_once(verdict, checks)
    tests = tuple(_test(check, page[check.step, check.id], grade, most) for check in checks) or None
    return PrairieLearnResults(
        gradable=grade is not None,
        score=None if grade is None else grade.share,
        format_errors=lines if grade is None else None,
        message=None if grade is None else "\n".join(lines),
        output=output,
        tests=tests,
        grader=trace(verdict),
    )


def _test(check: CheckVerdict, told: Feedback, grade: Grade | None, most: int) -> PrairieLearnTest:
    return PrairieLearnTest(
        name=name_of(check, grade),
        description=f"Step {check.step}",
        points=check.score,
        max_points=check.max_score,
        message=as_text(cut(of_check(told), most)),
    )
