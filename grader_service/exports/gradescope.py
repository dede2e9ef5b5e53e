"""Gradescope's `results.json`: those of its published fields that we write, as strict models, and a verdict in them.

Fields are those of "Autograder Specifications", section "Output format", of Gradescope's autograder documentation.
A document either has a score at the top or tests. A test without a score is an informational one, with or without a
status. Our documents have a score everywhere or nowhere: Gradescope adds up what it finds, so points of some tests
beside open ones would make every open one a 0.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from grader_service.exports.grades import Grade, Trace, grade_of, name_of, numbers, seconds, shown, summary, trace
from grader_service.exports.parts import Piece, as_html, cut, log_of, of_check, of_run
from grader_service.model.base import Frozen
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import CheckVerdict, Outcome, Verdict
from grader_service.report.once import told_once

Format = Literal["text", "html"]
Visibility = Literal["hidden", "visible"]
_MOST_TEXT = 8192
_STATUS: Mapping[Outcome, Literal["passed", "failed"]] = {Outcome.PASSED: "passed", Outcome.FAILED: "failed"}
"""The two that Gradescope knows; a test that was not decided has none."""


class GradescopeTest(Frozen):
    """One entry of `tests`."""

    score: float | None = None
    max_score: float | None = None
    status: Literal["passed", "failed"] | None = None
    name: str | None = None
    number: str | None = None
    output: str | None = None
    tags: tuple[str, ...] | None = None
    extra_data: dict[str, str] | None = None


class GradescopeResults(Frozen):
    """The whole document."""

    score: float | None = None
    """Replaces the sum of the tests' scores."""
    execution_time: Annotated[float, Field(ge=0)] | None = None
    """Seconds."""
    output: str | None = None
    output_format: Format | None = None
    test_output_format: Format | None = None
    test_name_format: Format | None = None
    visibility: Visibility | None = None
    stdout_visibility: Visibility | None = None
    extra_data: Trace | None = None
    tests: tuple[GradescopeTest, ...] | None = None

    @model_validator(mode="after")
    def _has_score_or_tests(self) -> Self:
        if self.score is None and not self.tests:
            raise ValueError("a document without a score at the top needs tests")
        return self


def gradescope(verdict: Verdict) -> GradescopeResults:
    """The verdict for Gradescope, visible to its learner; what the autograder's script prints is hidden.

    Headings are plain text. What is said to the learner is HTML of ours around texts that are escaped, each of them.
    """
    grade = grade_of(verdict)
    checks = shown(verdict)
    run = verdict.stopped
    above = (
        *(of_run(run) if run is not None else ()),
        *(Piece("text", line) for line in summary(verdict, grade, _MOST_TEXT)),
    )
    page = told_once(verdict, checks)
    numbered = zip(checks, numbers(checks), strict=True)
    tests = [_test(check, page[check.step, check.id], number, grade) for check, number in numbered]
    if not tests and grade is None:
        tests = [GradescopeTest(name=f"Submission: {verdict.status.value}", tags=("submission",))]
    return GradescopeResults(
        score=grade.score if grade is not None else None,
        execution_time=seconds(verdict),
        output=_html((*above, *(log_of(run) if run is not None else ()))),
        output_format="html",
        test_output_format="html",
        test_name_format="text",
        visibility="visible",
        stdout_visibility="hidden",
        extra_data=trace(verdict),
        tests=tuple(tests),
    )


def _test(check: CheckVerdict, told: Feedback, number: str, grade: Grade | None) -> GradescopeTest:
    return GradescopeTest(
        score=check.score if grade is not None else None,
        max_score=check.max_score if grade is not None else None,
        status=_STATUS.get(check.counted),
        name=name_of(check, grade),
        number=number,
        output=_html(of_check(told)),
        tags=(check.step,),
        extra_data={"check": check.id, "outcome": check.outcome.value, "code": check.code},
    )


def _html(pieces: Iterable[Piece]) -> str:
    return as_html(cut(pieces, _MOST_TEXT))
