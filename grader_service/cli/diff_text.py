"""A batch's diff and its flake ledger on a terminal. Every text of a learner is shown as text, never as markup."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from grader_service.cli.output import table_of
from grader_service.cli.render import COLOURS
from grader_service.model.diff import (
    CHANGED,
    OPEN,
    CheckDiff,
    Diff,
    Flakes,
    Kind,
    Mover,
    Result,
    StepDiff,
    Transition,
)
from grader_service.model.regrade import BatchState
from grader_service.report.formats import ABSENT, percent, points, ratio

_KINDS = {
    Kind.NEWLY_FAILING: "newly failing",
    Kind.NEWLY_PASSING: "newly passing",
    Kind.NEWLY_UNDECIDED: "no longer decided",
    Kind.OTHERWISE_CHANGED: "otherwise changed",
    Kind.UNCHANGED: "unchanged",
    Kind.OUTDATED: "outdated: another verdict came in force meanwhile",
    Kind.PENDING: "without a new verdict yet",
    Kind.NEEDS_ATTENTION: "without a new verdict: our failures used up the tries",
    Kind.CANCELLED: "without a new verdict: cancelled",
}
_MOST_CODES = 10


def show_diff(console: Console, diff: Diff, limit: int) -> None:
    """Counts, the matrix of statuses, scores, checks, codes, and at most `limit` lines of each list of submissions."""
    batch = diff.batch
    console.print(Text(f"{batch.batch_id}: {batch.state.value}, by {batch.author}", style="bold"))
    console.print(Text(f"{batch.reason}\n"))
    _show_kinds(console, diff)
    if diff.compared:
        _show_matrix(console, diff.statuses)
        _show_scores(console, diff)
        if len(diff.steps) != len(diff.checks):  # else every step is its only check
            _show_parts(console, "step", diff.steps)
        _show_parts(console, "check", diff.checks)
        _show_codes(console, diff)
    _show_movers(console, "newly failing", diff.newly_failing, diff.count(Kind.NEWLY_FAILING), limit)
    others = [mover for mover in diff.movers if mover.kind is not Kind.NEWLY_FAILING]
    among = diff.changed - diff.count(Kind.NEWLY_FAILING)
    _show_movers(console, "other changes, the biggest first", others, among, limit)
    if diff.flakes is not None and diff.flakes.varying:
        line = f"\n{diff.flakes.varying} of {diff.flakes.submissions} vary over their repetitions: "
        console.print(Text(f"{line}grader regrade flakes {batch.batch_id}", style="yellow"))
    for warning in diff.warnings:
        console.print(Text(f"\nattention: {warning}", style="yellow"))


def show_flakes(console: Console, flakes: Flakes, limit: int) -> None:
    """A line for the status and each check, the spread of what was measured, and at most `limit` submissions."""
    console.print(
        Text(f"{flakes.varying} of {flakes.submissions} submissions vary over {flakes.repeats} repetitions", "bold")
    )
    rows: list[tuple[str, ...]] = [
        (
            row.check or "(status)",
            f"{row.varying} of {row.submissions}",
            percent(row.rate, 3),
            f"{percent(row.low, 3)} to {percent(row.high, 3)}",
            str(row.rescored),
            ", ".join(f"{seen.result} {seen.submissions}" for seen in row.results),
        )
        for row in flakes.rows
    ]
    console.print(table_of("check", "varying", "rate", "95 % interval", "points only", "outcomes seen", rows=rows))
    if flakes.spreads:
        console.print()
        rows = [
            (one.value, str(one.submissions), *(percent(value, 3) for value in (one.median, one.p95, one.highest)))
            for one in flakes.spreads
        ]
        headings = ("coefficient of variation", "submissions", "median", "95th percentile", "highest")
        console.print(table_of(*headings, rows=rows))
    if flakes.unsteady:
        console.print()
        rows = [
            (item.submission_id, item.learner or ABSENT, item.check or "(status)", ", ".join(item.outcomes))
            for item in flakes.unsteady[:limit]
        ]
        console.print(table_of("submission", "learner", "check", "outcomes", rows=rows))
        _show_beyond(console, len(flakes.unsteady) + flakes.unsteady_beyond, limit)


def _show_kinds(console: Console, diff: Diff) -> None:
    total = diff.count()
    what = "submission" if total == 1 else "submissions"
    would = "changed" if diff.batch.state is BatchState.APPLIED else "would change"
    console.print(f"{total} {what}, {diff.changed} {would}", markup=False)
    for kind, words in _KINDS.items():
        count = diff.count(kind)
        if count:
            style = "red" if kind is Kind.NEWLY_FAILING else "yellow" if kind in {*CHANGED, *OPEN} else "none"
            console.print(Text(f"{count:>7}  {words}", style=style))
    if diff.undecided_by_evidence:
        words = "with a check that stored evidence leaves open; a run might decide it"
        console.print(Text(f"{diff.undecided_by_evidence:>7}  {words}"))
    if diff.newer:
        console.print(Text(f"{diff.newer:>7}  of those that change: their learner handed in another one later"))


def _show_matrix(console: Console, transitions: Sequence[Transition]) -> None:
    columns = _ordered(transition.new for transition in transitions)
    counts = {(item.old, item.new): item.submissions for item in transitions}
    console.print()
    table = table_of("before ↓ after →")
    for column in columns:
        table.add_column(Text(column, style=COLOURS[column]), justify="right")
    for row in _ordered(transition.old for transition in transitions):
        cells = (
            Text(str(counts.get((row, column), "·")), style="dim" if row == column else "bold") for column in columns
        )
        table.add_row(Text(row, style=COLOURS[row]), *cells)
    console.print(table)


def _show_scores(console: Console, diff: Diff) -> None:
    if not diff.before.scored and not diff.after.scored:
        return
    console.print()
    means = f"{_share(diff.before.mean)} → {_share(diff.after.mean)}"
    console.print(Text(f"mean score {means}, median {_share(diff.before.median)} → {_share(diff.after.median)}"))
    if diff.before.without or diff.after.without:
        console.print(Text(f"without a score {diff.before.without} → {diff.after.without}"))


def _share(value: float | None) -> str:
    return ABSENT if value is None else percent(value, 3)


def _show_parts(console: Console, what: str, parts: Sequence[StepDiff]) -> None:
    if not parts:
        return
    console.print()
    several = len({part.lab for part in parts}) > 1
    rows = (
        (
            (f"{part.lab} " if several else "") + (part.check if isinstance(part, CheckDiff) else part.step),
            str(part.changed),
            _rate(part.passed_before, part.decided_before),
            _rate(part.passed_after, part.decided_after),
            ", ".join(f"{one.old} → {one.new} {one.submissions}" for one in part.transitions if one.old != one.new),
        )
        for part in parts
    )
    console.print(table_of(what, "changed", "passed before", "passed after", "transitions", rows=rows))


def _rate(passed: int, decided: int) -> str:
    return f"{percent(passed / decided, 3)} of {decided}" if decided else ABSENT


def _show_codes(console: Console, diff: Diff) -> None:
    risen = [code for code in diff.codes if code.after > code.before][:_MOST_CODES]
    if not risen:
        return
    console.print()
    rows = ((code.code, str(code.before), str(code.after)) for code in risen)
    console.print(table_of("code that came up more", "before", "after", rows=rows))


def _show_movers(console: Console, title: str, movers: Sequence[Mover], count: int, limit: int) -> None:
    if not movers or not limit:
        return
    console.print(Text(f"\n{title}", style="bold"))
    for mover in movers[:limit]:
        line = Text(f"{mover.submission_id}  {mover.learner or ABSENT}: {mover.old_status} → ")
        line.append(mover.new_status, style=COLOURS[mover.new_status])
        console.print(line.append(f", {points(mover.old_score)} → {points(mover.new_score)}"))
        if why := _why(mover):
            console.print(Padding(Text(why, style="dim"), (0, 0, 0, 4)))
    _show_beyond(console, count, min(limit, len(movers)))


def _why(mover: Mover) -> str:
    parts = [f"{reason.check} {reason.old} → {reason.new} ({reason.new_code or 'gone'})" for reason in mover.reasons]
    if mover.new_ratio is not None:
        before = f"{ratio(mover.old_ratio.ratio)} → " if mover.old_ratio not in {None, mover.new_ratio} else ""
        parts.append(f"ratio {before}{ratio(mover.new_ratio.ratio)}")
    return ", ".join(parts)


def _show_beyond(console: Console, count: int, shown: int) -> None:
    if count > shown:
        console.print(Text(f"… and {count - shown} more", style="dim"))


def _ordered(results: Iterable[Result]) -> list[Result]:
    present = set(results)
    return [result for result in COLOURS if result in present]
