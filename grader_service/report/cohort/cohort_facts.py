"""What the page of a cohort shows, made from the counts; pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from grader_service.model.verdict import Status
from grader_service.report import formats
from grader_service.report.cohort import plots, wording
from grader_service.report.cohort.choices import Choices, Option, columns
from grader_service.report.cohort.embedded_data import safe
from grader_service.report.cohort.plots import ArmRow
from grader_service.report.cohort.speed import arm_row
from grader_service.report.cohort.spread import Share, binned, share, summary
from grader_service.report.cohort.tally import SCORE_BINS, Reason, Tally
from grader_service.report.words import listed

_MOST_REASONS = 30
_MOST_LABS = 4


def cohort_facts(tally: Tally, title: str, generated_at: float | None) -> dict[str, object]:
    """The template's variables."""
    counts = binned(tally.shares, 1.0, SCORE_BINS)
    arms = _arms(tally)
    reasons = _reasons(tally)
    return {
        "title": title,
        "generated_at": generated_at,
        "tally": tally,
        "lead": _lead(tally),
        "statuses": [(status.value, tally.statuses[status]) for status in Status],
        "scores": summary(tally.shares),
        "bins": _bins(counts, tally.top),
        "checks": tally.ordered_checks(),
        "arms": arms,
        "bands": len(tally.ratios) > plots.MOST_POINTS,
        "plots": _plots(tally, counts, arms),
        "reasons": reasons[:_MOST_REASONS],
        "reasons_beyond": max(0, len(reasons) - _MOST_REASONS),
        "columns": columns(
            tally.labs,
            tally.cohorts,
            ("status", "Status", "text"),
            ("score", "Score", "number"),
            ("code", "Code", "text"),
            *([("ratio", "Ratio", "number")] if tally.ratios else []),
            ("received_at", "Received", "text"),
        ),
        "filters": _filters(tally),
    }


def _lead(tally: Tally) -> str:
    if not tally.submissions:
        return "No submission has a verdict."
    labs = sorted(tally.labs)
    shown = listed(labs) if len(labs) <= _MOST_LABS else wording.several(len(labs), "lab")
    return (
        f"{wording.several(tally.submissions, 'submission')} of "
        f"{wording.several(len(tally.learners), 'learner')} to {shown}."
    )


def _bins(counts: Sequence[int], top: float | None) -> list[tuple[str, str, int]]:
    whole = 100.0 if top is None else top
    ends = [formats.points(whole * place / len(counts)) for place in range(len(counts) + 1)]
    return [(low, high, count) for (low, high), count in zip(pairwise(ends), counts, strict=True)]


def _arms(tally: Tally) -> list[ArmRow]:
    rows = [arm_row(name, tally.rates[name]) for name in sorted(tally.rates, key=wording.arm_order)]
    return [row for row in rows if row is not None]


def _plots(tally: Tally, counts: Sequence[int], arms: Sequence[ArmRow]) -> Mapping[str, Markup]:
    drawn = {}
    if tally.shares:
        drawn["scores"] = plots.score_plot(counts, tally.top)
    if tally.ratios:
        drawn["ratios"] = plots.ratio_plot(tally.ratios)
    if arms:
        drawn["rates"] = plots.rate_plot(arms)
    return drawn


def _reasons(tally: Tally) -> list[tuple[Reason, int, Share]]:
    ranked = sorted(tally.reasons.items(), key=lambda pair: (-pair[1], pair[0].code, pair[0].step or ""))
    return [(reason, count, share(count, tally.submissions)) for reason, count in ranked]


def _filters(tally: Tally) -> dict[str, list[Option]]:
    seen = Choices(
        statuses={status.value for status in tally.statuses},
        checks={check.name: None for check in tally.ordered_checks()},
        outcomes={outcome.value for check in tally.checks.values() for outcome in check.outcomes},
        labs=set(tally.labs),
        cohorts={str(safe(name)) for name in tally.cohorts if name is not None},
    )
    return seen.offered() | {"codes": [(code, f"{code} ({count:,})") for code, count in sorted(tally.codes.items())]}
