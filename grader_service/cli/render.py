"""A verdict on a terminal. Text that came from a learner is shown as text, never as markup."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader_service.cli.output import table_of
from grader_service.model.diff import Result
from grader_service.model.feedback import Feedback, Severity
from grader_service.model.place import Place
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import CheckVerdict, Mode, Outcome, Verdict
from grader_service.report.changes import NOT_REACHED, results
from grader_service.report.once import decisive, told_once
from grader_service.report.words import STOPPED_AND_PASSED

COLOURS: dict[Result, str] = {
    "passed": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "unverified": "yellow",
    "rejected": "red",
    "skipped": "bright_black",
    "error": "magenta",
    "absent": "bright_black",
}
"""In the order in which results are named."""
_MARKS = {"passed": "✓", "failed": "✗", "inconclusive": "≈", "unverified": "?", "skipped": "–", "error": "!"}
_SIGNS = {Severity.WARNING: ("!", "yellow"), Severity.NOTE: ("·", "bright_black")}


def show_verdict(console: Console, verdict: Verdict, *, for_staff: bool = False) -> None:
    """The root cause with what to do about it, then the steps, and what other checks say beside having passed.

    For staff with codes, tiers, the rates of all arms, and all that passed checks have seen.
    """
    first = decisive(verdict)
    others = [check for check in verdict.checks if check is not first and not check.unreached]
    page = told_once(verdict, [*([] if first is None else [first]), *others])
    if verdict.stopped is not None:
        show_run(console, verdict.stopped, passed=verdict.passed_all_the_same)
    elif not verdict.checks:
        sign, colour = _MARKS.get(verdict.status.value, "✗"), COLOURS[verdict.status.value]
        console.print(Text(f"{sign} {verdict.feedback}\n", style=colour))
    elif first is not None:
        _show_check(console, first, page[first.step, first.id], for_staff=for_staff)
        console.print()
    _show_status(console, verdict)
    if not verdict.checks:
        return
    _show_steps(console, verdict)
    for check in others:
        told = page[check.step, check.id]
        if for_staff or check.outcome is not Outcome.PASSED or told.advice or "ratio" in told.numbers:
            console.print()
            _show_check(console, check, told, for_staff=for_staff)
    if for_staff:
        _show_arms(console, verdict)
    if not verdict.steps and verdict.feedback:
        console.print(Text(f"\n{verdict.feedback}", style="magenta"))


def show_run(console: Console, run: RunReport, *, passed: bool = False) -> None:
    """How a run ended that did not come to its end, where, what to do, and what it printed last.

    `passed` says that every step passed all the same.
    """
    mark, style = ("!", "bold yellow") if passed else ("✗", "bold red")
    console.print(Text(f"{mark} {run.outcome}", style=style))
    if run.place is not None:
        console.print(_source(run.place))
    if run.further_cause:
        console.print(Padding(Text(run.further_cause), (0, 0, 0, 2)))
    if run.cause_place is not None:
        console.print(_source(run.cause_place))
    if run.remedy:
        console.print(_action(run.remedy))
    if passed:
        console.print(Padding(Text(STOPPED_AND_PASSED), (0, 0, 0, 2)))
    if run.output_tail:
        console.print(Text("\n  The last that it printed:", style="dim"))
        console.print(_indented(run.output_tail, "dim"))
    console.print()


def _show_status(console: Console, verdict: Verdict) -> None:
    line = Text(verdict.status.value.upper(), style=f"bold {COLOURS[verdict.status.value]}")
    score = "no score" if verdict.score is None else f"{verdict.score:g} of {verdict.max_score:g} points"
    line.append(f"   {score}   {verdict.lab_title or verdict.lab}", style="default")
    if verdict.mode is Mode.REHEARSAL:
        line.append("   rehearsal, not a grade", style="italic")
    console.print(line)


def _show_steps(console: Console, verdict: Verdict) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    came_out = results(verdict)
    for step in verdict.steps:
        outcome: Result = "skipped" if came_out[step.id] == NOT_REACHED else step.outcome.value
        points = "–" if step.score is None else f"{step.score:g}"
        table.add_row(
            Text(f"{_MARKS[outcome]} {came_out[step.id]}", style=COLOURS[outcome]),
            f"{points}/{step.max_score:g}",
            Text(step.title or step.id),
        )
    console.print(table)


def _show_check(console: Console, check: CheckVerdict, told: Feedback, *, for_staff: bool) -> None:
    passed = check.outcome is Outcome.PASSED
    line = Text(f"{_MARKS[check.outcome.value]} ", style=COLOURS[check.outcome.value])
    line.append(told.outcome, style="default" if passed else "bold")
    if for_staff:
        tier = f", tier {check.tier.value}" if check.tier else ""
        line.append(f"   {check.step}, {check.id} {check.version}: {check.code}{tier}", style="dim")
    show_told(console, line, told, dim=passed, observed=for_staff or not passed)


def show_told(console: Console, line: Text, told: Feedback, *, dim: bool, observed: bool = True) -> None:
    """The line, what was seen and wanted where that is to be shown, and what to do."""
    console.print(line)
    if observed and told.observed:
        console.print(Padding(Text(told.observed, style="dim" if dim else "default"), (0, 0, 0, 2)))
    _show_next(console, told)


def _show_next(console: Console, told: Feedback) -> None:
    """What to do, with the line that it is about, and the advice beside it."""
    if told.next is not None:
        if told.next.place is not None:
            console.print(_source(told.next.place))
        console.print(_action(told.next.text))
        if told.next.code:
            console.print(_indented(told.next.code, "cyan"))
    for advice in told.advice:
        sign, colour = _SIGNS[advice.severity]
        line = Text(f"{sign} ", style=colour)
        line.append(advice.told, style="default")
        console.print(Padding(line, (0, 0, 0, 2)))


def _action(text: str) -> Padding:
    line = Text("→ ", style="bold")
    line.append(text, style="default")
    return Padding(line, (0, 0, 0, 2))


def _source(place: Place) -> Padding:
    """The line with those around it, as in an editor."""
    shown = Text(f"{place.where}\n", style="dim")
    for number, source in place.lines:
        here = number == place.line
        shown.append(f"{'>' if here else ' '} {number:>4} │ {source}\n", style="default" if here else "dim")
    shown.rstrip()
    return Padding(shown, (0, 0, 0, 2))


def _indented(text: str, style: str) -> Padding:
    return Padding(Text(text, style=style), (0, 0, 0, 4))


def _show_arms(console: Console, verdict: Verdict) -> None:
    measurement = verdict.measurement
    if measurement is None or not measurement.arms:
        return
    table = table_of("arm", "images/s", "range")
    for arm in measurement.arms:
        if arm.images_per_s is not None:
            table.add_row(arm.arm.value, f"{arm.images_per_s:,.0f}", f"{arm.low:,.0f} – {arm.high:,.0f}")
    console.print()
    console.print(table)
