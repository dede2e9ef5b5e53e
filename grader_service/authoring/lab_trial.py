"""Grades example submissions by a lab before a course does: what passes where, and whether that was meant."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal

from grader_service.authoring.lab_scaffold import FAILING, PASSING
from grader_service.errors import UsageError
from grader_service.ingest.artifact import KINDS
from grader_service.model.base import Frozen
from grader_service.model.lab import LabSpec
from grader_service.model.verdict import Outcome, Status, Verdict
from grader_service.service.local import Graded

_TOOLS = ("__pycache__", "__MACOSX", "venv", "node_modules")
"""Folders in which no submission lies; nor does one in a folder or a file whose name begins with a dot."""


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
    code: str
    """Of the verdict."""
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
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.name.lower().endswith(tuple(KINDS))
        and not any(part.startswith(".") or part in _TOOLS for part in path.relative_to(folder).parts)
    )
    if not found:
        raise UsageError(f"{folder} holds no submission; expected files that end in {', '.join(KINDS)}")
    return found


def tried(lab: LabSpec, folder: Path, submissions: Sequence[Path], grade: Callable[[Path], Graded]) -> Iterator[Row]:
    """Grades the submissions of a folder one after the other.

    Raises:
        InfrastructureError: a grading failed through us.
    """
    advice = {(step.id, check.id) for step in lab.steps for check in step.checks if check.optional}
    for path in submissions:
        graded = grade(path)
        if graded.failure is not None:
            raise graded.failure
        yield _row(path, folder, graded.verdict, advice)


def _row(path: Path, folder: Path, verdict: Verdict, advice: Collection[tuple[str, str]]) -> Row:
    parents = (folder.resolve().name, *path.relative_to(folder).parts[:-1])
    expected: Literal["passed", "failed"] | None = None
    if PASSING in parents:
        expected = "passed"
    elif FAILING in parents:
        expected = "failed"
    # The first of a step that did not pass, one that the lab requires before one that only advises.
    wrong = [check for check in verdict.checks if check.outcome is not Outcome.PASSED]
    wrong.sort(key=lambda one: (one.step, one.id) in advice)
    reasons = {check.step: check.code for check in reversed(wrong)}
    cells = tuple(
        Cell(
            step=step.id,
            outcome=step.outcome,
            code="" if step.outcome is Outcome.PASSED else reasons.get(step.id, verdict.code),
        )
        for step in verdict.steps
    )
    name = path.relative_to(folder).as_posix()
    return Row(submission=name, expected=expected, status=verdict.status, code=verdict.code, cells=cells)
