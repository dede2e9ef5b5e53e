"""What the page of a batch shows, made from its diff; pure."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from grader_service.model.diff import OPEN, CodeDiff, Diff, Filter, Kind, StepDiff, Transition
from grader_service.model.regrade import BatchState
from grader_service.report import formats
from grader_service.report.cohort import plots, wording
from grader_service.report.cohort.choices import Choices, Option, columns
from grader_service.report.cohort.plots import ArmRow
from grader_service.report.cohort.selection import described
from grader_service.report.cohort.speed import SIDES, Speeds
from grader_service.report.cohort.spread import Share, share

_MOST_MOVERS = 15
_MOST_FAILING = 15
_MOST_CODES = 30
_MOST_UNSTEADY = 100

_Part = tuple[StepDiff, Share, Share, list[Transition]]
"""A step or check, its pass rates before and after, and what moved."""
_Row = tuple[str, list[tuple[str, int]], int]


def batch_facts(diff: Diff, choices: Choices, speeds: Speeds) -> dict[str, object]:
    """The template's variables."""
    batch, flakes = diff.batch, diff.flakes
    unsteady = flakes.unsteady if flakes is not None else ()
    used = diff.progress.gpu_used_s
    arms = speeds.arms()
    return {
        "diff": diff,
        "batch": batch,
        "headline": _headline(diff),
        "state_meaning": wording.STATES[batch.state],
        "level_meaning": wording.LEVELS[batch.level],
        "several_labs": len(choices.labs) > 1,
        "narrowed": _narrowed(diff.chosen),
        "total": diff.count(),
        "not_compared": diff.count() - diff.compared,
        "kinds": _kinds(diff),
        "matrix": _matrix(diff),
        "checks": [_part(check) for check in diff.checks],
        "steps": [_part(step) for step in diff.steps] if len(diff.steps) < len(diff.checks) else [],
        "plots": _plots(diff, speeds, arms),
        "speeds": speeds,
        "arms": arms,
        "ratio_sides": list(zip(SIDES, speeds.sides(), strict=True)),
        "bands": len(speeds.ratios) > plots.MOST_POINTS,
        "failing": diff.newly_failing[:_MOST_FAILING],
        "failing_beyond": diff.newly_failing_beyond + max(0, len(diff.newly_failing) - _MOST_FAILING),
        "top_movers": diff.movers[:_MOST_MOVERS],
        "codes": _codes(diff.codes),
        "unsteady": unsteady[:_MOST_UNSTEADY],
        "unsteady_beyond": (flakes.unsteady_beyond if flakes else 0) + max(0, len(unsteady) - _MOST_UNSTEADY),
        "selection": described(batch.selection),
        "gpu_words": formats.seconds(used) if used else "none",
        "progress_words": f"{diff.progress.done:,} of {wording.several(diff.progress.total, 'verdict')} made",
        "columns": columns(
            choices.labs,
            choices.cohorts,
            ("kind", "Change", "text"),
            ("old", "Before", "text"),
            ("new", "After", "text"),
            ("scores", "Score", "number"),
            ("moved", "Moved", "number"),
            ("differing", "Checks", "number"),
            ("code", "Code after", "text"),
        ),
        "filters": {**choices.offered(), "kinds": _kind_options(diff)},
    }


def _plots(diff: Diff, speeds: Speeds, arms: Sequence[ArmRow]) -> Mapping[str, Markup]:
    drawn = {}
    if diff.before.scored or diff.after.scored:
        drawn["scores"] = plots.moved_scores_plot(diff.before.histogram, diff.after.histogram)
    if speeds.ratios:
        drawn["ratios"] = (
            plots.moved_ratios_plot(speeds.ratios)
            if speeds.moved
            else plots.ratio_plot([after for _, after in speeds.ratios])
        )
    if arms:
        drawn["rates"] = plots.rate_plot(arms)
    return drawn


def _headline(diff: Diff) -> str:
    """The answer first."""
    applied = diff.batch.state is BatchState.APPLIED
    if not diff.changed:
        words = "Nothing changed" if applied else "Nothing changes"
    else:
        verb = "changed" if applied else "changes" if diff.changed == 1 else "change"
        words = f"{diff.changed:,} of {wording.several(diff.compared, 'verdict')} {verb}"
    return f"{words} so far" if diff.count(Kind.PENDING) else words


def _kinds(diff: Diff) -> list[tuple[str, str, str, str, int]]:
    """Kind, sign, name, meaning and count; those of open submissions only where there are some."""
    return [
        (kind.value, mark, name, meaning, diff.count(kind))
        for kind, (mark, name, meaning) in wording.KINDS.items()
        if diff.count(kind) or kind not in OPEN or kind is Kind.PENDING
    ]


def _kind_options(diff: Diff) -> list[Option]:
    kinds = [(kind.value, wording.KINDS[kind][1]) for kind in wording.KINDS if diff.count(kind)]
    return [("changed", "any change"), ("compared", "all that were compared"), *kinds]


def _matrix(diff: Diff) -> dict[str, object]:
    counts = {(str(step.old), str(step.new)): step.submissions for step in diff.statuses if step.submissions}
    seen = sorted({str(status) for pair in counts for status in pair}, key=wording.status_order)
    rows: list[_Row] = []
    for old in seen:
        cells = [(new, counts.get((old, new), 0)) for new in seen]
        rows.append((old, cells, sum(count for _, count in cells)))
    sums = [sum(counts.get((old, new), 0) for old in seen) for new in seen]
    return {"columns": seen, "rows": rows, "sums": sums}


def _part(part: StepDiff) -> _Part:
    moves = [move for move in part.transitions if move.old != move.new and move.submissions]
    moves.sort(key=lambda move: -move.submissions)
    before = share(part.passed_before, part.decided_before)
    return part, before, share(part.passed_after, part.decided_after), moves


def _codes(codes: Sequence[CodeDiff]) -> list[CodeDiff]:
    """The codes whose counts moved, the most first."""
    moved = [code for code in codes if code.before != code.after]
    return sorted(moved, key=lambda code: -abs(code.after - code.before))[:_MOST_CODES]


def _narrowed(chosen: Filter | None) -> list[str]:
    if chosen is None:
        return []
    named = {
        "learner": chosen.learner,
        "text": chosen.text,
        "step": chosen.step,
        "check": chosen.check,
        "before": chosen.old,
        "after": chosen.new,
        "code": chosen.code,
        "only": "what differs" if chosen.differs else "",
        "change": ", ".join(wording.KINDS[kind][1] for kind in chosen.kinds),
    }
    return [f"{name} {value}" for name, value in named.items() if value]
