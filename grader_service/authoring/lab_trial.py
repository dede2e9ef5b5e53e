"""Grades example submissions by a lab before a course does: what passes where, and whether that was meant."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from grader_service.authoring.lab_scaffold import FAILING, PASSING
from grader_service.errors import UsageError
from grader_service.grading.flow import Graded
from grader_service.model.base import Frozen
from grader_service.model.verdict import Outcome, Status, Verdict

_ENDINGS = (".py", ".ipynb", ".zip", ".tar", ".tar.gz")


class Cell(Frozen):
    """One step of one submission."""

    step: str
    outcome: Outcome
    code: str
    """Of the first of its checks that did not pass; empty where all did."""


class Row(Frozen):
    """One submission."""

    submission: str
    """Path below the folder."""
    expected: Literal["passed", "failed"] | None
    """By the folder in which it lies; null where that says nothing."""
    status: Status
    cells: tuple[Cell, ...]

    @property
    def right(self) -> bool | None:
        """Whether it came out as expected; None where nothing was."""
        return None if self.expected is None else self.status.value == self.expected


def submissions_in(folder: Path) -> list[Path]:
    """The submissions of a folder and of those below it, in order.

    Raises:
        UsageError: there is no such folder, or none in it.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; expected one with submissions in {PASSING}/ and {FAILING}/")
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(_ENDINGS))
    if not found:
        raise UsageError(f"{folder} holds no submission; expected files that end in {', '.join(_ENDINGS)}")
    return found


def tried(folder: Path, submissions: Sequence[Path], grade: Callable[[Path], Graded]) -> Iterator[Row]:
    """Grades one after the other.

    Args:
        folder: in which they lie.
        submissions: of it.
        grade: grades one file.

    Raises:
        InfrastructureError: a grading failed through us.
    """
    for path in submissions:
        graded = grade(path)
        if graded.failure is not None:
            raise graded.failure
        yield _row(path.relative_to(folder), graded.verdict)


def _row(path: Path, verdict: Verdict) -> Row:
    expected: Literal["passed", "failed"] | None = None
    if PASSING in path.parts[:-1]:
        expected = "passed"
    elif FAILING in path.parts[:-1]:
        expected = "failed"
    reasons = {check.step: check.code for check in reversed(verdict.checks) if check.outcome is not Outcome.PASSED}
    cells = tuple(
        Cell(
            step=step.id,
            outcome=step.outcome,
            code="" if step.outcome is Outcome.PASSED else reasons.get(step.id, verdict.code),
        )
        for step in verdict.steps
    )
    return Row(submission=path.as_posix(), expected=expected, status=verdict.status, cells=cells)
