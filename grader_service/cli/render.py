"""A verdict on a terminal. Text that came from a learner is shown as text, never as markup."""

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from grader_service.cli.output import table_of
from grader_service.model.verdict import Mode, Outcome, Status, Verdict

_COLOURS = {
    "passed": "green",
    "failed": "red",
    "inconclusive": "yellow",
    "unverified": "yellow",
    "skipped": "bright_black",
    "rejected": "red",
    "error": "magenta",
}


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Status, one row per check, and the feedback of each."""
    title = Text()
    title.append(verdict.status.value.upper(), style=f"bold {_COLOURS[verdict.status.value]}")
    score = "no score" if verdict.score is None else f"{verdict.score:g} of {verdict.max_score:g} points"
    title.append(f"   {score}   {verdict.lab}")
    if verdict.mode is Mode.REHEARSAL:
        title.append("   rehearsal: complete, but not a grade", style="italic")
    console.print(Panel(title, border_style=_COLOURS[verdict.status.value]))
    if not verdict.checks:
        console.print(Text(verdict.feedback))
        return
    table = table_of("step", "check", "outcome", "points", "tier", "code", overflow="ellipsis")
    for check in verdict.checks:
        points = "–" if check.score is None else f"{check.score:g}/{check.max_score:g}"
        table.add_row(
            check.step,
            check.id,
            Text(check.outcome.value, style=_COLOURS[check.outcome.value]),
            points,
            check.tier.value if check.tier else "",
            check.code,
        )
    console.print(table)
    for check in verdict.checks:
        mark = "✓" if check.outcome is Outcome.PASSED else "✗" if check.outcome is Outcome.FAILED else "?"
        line = Text(f"\n{mark} ", style=_COLOURS[check.outcome.value])
        line.append(check.feedback, style="default")
        console.print(line)
    _show_arms(console, verdict)
    if verdict.status is Status.ERROR:
        console.print(Text(f"\n{verdict.feedback}", style="magenta"))


def _show_arms(console: Console, verdict: Verdict) -> None:
    measurement = verdict.measurement
    if measurement is None or not measurement.arms:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for heading, justify in (("arm", "left"), ("images/s", "right"), ("range", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for arm in measurement.arms:
        if arm.images_per_s is not None:
            table.add_row(arm.arm.value, f"{arm.images_per_s:,.0f}", f"{arm.low:,.0f} – {arm.high:,.0f}")
    console.print()
    console.print(table)
