"""A verdict on a terminal: the root cause and what to do about it stand first."""

import io

from rich.console import Console

from grader_service.cli.render import show_verdict
from grader_service.model.verdict import Status
from tests.report.cases import CASES, stopped, told
from tests.report.factories import verdict


def shown(given, **how):
    """The lines that a very wide terminal shows."""
    out = io.StringIO()
    show_verdict(Console(file=out, width=1000, highlight=False), given, **how)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_what_stopped_the_run_stands_first():
    """Above the status."""
    given = stopped()
    assert shown(given)[0] == f"✗ {given.run.outcome}"


def test_the_check_that_decided_stands_first():
    """With what to do, above the status, and only there."""
    given = told()
    lines = shown(given)
    first = f"✗ {given.checks[1].told.outcome}"
    status = next(number for number, line in enumerate(lines) if line.startswith("FAILED"))
    assert lines[0] == first
    assert lines.count(first) == 1
    assert any(line.strip().startswith("→") for line in lines[:status])


def test_a_check_whose_result_the_lab_hides_is_not_put_first():
    """The verdict's code does not name it."""
    assert shown(told().model_copy(update={"code": "grade.failed"}))[0].startswith("FAILED")


def test_a_pass_has_no_cause():
    """Of a check that passed only staff see everything."""
    assert shown(verdict())[0].startswith("PASSED")
    only = told().checks[0]
    given = verdict(checks=(only,), steps=told().steps[:1], status=Status.PASSED)
    assert only.told.seen
    assert not any(only.told.seen in line for line in shown(given))
    assert any(only.told.seen in line for line in shown(given, for_staff=True))


def test_a_submission_that_cannot_be_run_is_told_why_first():
    """Then its status."""
    given = CASES["rejected"]()
    lines = shown(given)
    assert lines[0] == f"✗ {given.feedback}"
    assert any(line.startswith("REJECTED") for line in lines)
