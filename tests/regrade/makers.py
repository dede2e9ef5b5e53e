"""Builders of summaries, changes and batches; each test changes only what it is about."""

from collections.abc import Iterable
from typing import Any

from grader_service.model.diff import Diff
from grader_service.model.regrade import (
    Batch,
    BatchLab,
    BatchState,
    Change,
    Estimate,
    ItemState,
    Level,
    LevelCount,
    Progress,
    Selection,
)
from grader_service.model.verdict import Mode, Outcome, Status, StepVerdict, Tier
from grader_service.model.verdict_summary import CheckSummary, RateSummary, RatioSummary, VerdictSummary
from grader_service.regrade.diff import diff_of

CHECKS = {
    "jpeg_dataset": "baseline",
    "cuda_batch": "pipeline",
    "throughput_ratio": "benchmark",
    "reflections": "reflection",
}
"""Check to step of the lab `dali-pipelines`; each is worth 25 points."""
CODES = {
    Outcome.PASSED: "ok",
    Outcome.FAILED: "too_low",
    Outcome.INCONCLUSIVE: "noisy",
    Outcome.UNVERIFIED: "not_measured",
    Outcome.SKIPPED: "nothing_there",
    Outcome.ERROR: "broke",
}
LOST = {"throughput_ratio": "failed"}
NOISY = {"throughput_ratio": "inconclusive"}
POINTS = 25.0
MOMENT = 1_790_000_000.0
"""2026-09-21T14:13:20Z."""
Sided = dict[str, str] | VerdictSummary | None
"""Check to outcome, where it did not pass; or the whole summary."""
_WORST_FIRST = ("error", "failed", "unverified", "inconclusive", "skipped", "passed")
_SCORES = {Outcome.PASSED: POINTS, Outcome.FAILED: 0.0}


def a_check(check: str = "throughput_ratio", outcome: str = "passed", **changes: Any) -> CheckSummary:
    """One check that came out so, with its code and points."""
    outcome = Outcome(outcome)
    values: dict[str, Any] = {
        "id": check,
        "step": CHECKS.get(check, "extra"),
        "version": "1.0.0",
        "outcome": outcome,
        "code": f"{check}.{CODES[outcome]}",
        "score": _SCORES.get(outcome),
        "max_score": POINTS,
        "tier": Tier.GRAPH if check == "throughput_ratio" else None,
    }
    return CheckSummary(**(values | changes))


def a_ratio(ratio: float = 1.5) -> RatioSummary:
    """A measured ratio with an interval of 0.1 on either side."""
    return RatioSummary(ratio=ratio, low=ratio - 0.1, high=ratio + 0.1)


def a_rate(median: float = 1000.0) -> RateSummary:
    """Images per second of an arm, with 5 % on either side."""
    return RateSummary(median=median, low=median * 0.95, high=median * 1.05)


def a_summary(submission_id: str = "s:1", outcomes: dict[str, str] | None = None, **changes: Any) -> VerdictSummary:
    """A verdict on the four checks of the lab: all passed but those in `outcomes`; status and points follow."""
    given = dict.fromkeys(CHECKS, "passed") | (outcomes or {})
    checks = changes.pop("checks", tuple(a_check(check, outcome) for check, outcome in given.items()))
    steps = []
    for step in dict.fromkeys(check.step for check in checks):
        own = [check for check in checks if check.step == step]
        most = sum(check.max_score for check in own) or POINTS
        steps.append(StepVerdict(id=step, outcome=Outcome(worst(own)), score=total(own), max_score=most))
    found = worst(checks)
    values: dict[str, Any] = {
        "verdict_id": f"v:{submission_id}",
        "submission_id": submission_id,
        "run_id": f"r:{submission_id}",
        "lab": "dali-pipelines",
        "lab_version": "1.1.0",
        "learner": f"learner {submission_id}",
        "cohort": "2026-fall",
        "mode": Mode.OFFICIAL,
        "status": Status("unverified" if found == "skipped" else found),
        "code": next((check.code for check in checks if check.outcome.value == found != "passed"), "submission.passed"),
        "score": total(checks),
        "max_score": sum(check.max_score for check in checks) or 100.0,
        "created_at": MOMENT,
        "steps": tuple(steps),
        "checks": checks,
        "ratio": a_ratio(),
        "rates": {"dali": a_rate(1500.0), "pytorch": a_rate(1000.0)},
        "image_digest": "sha256:" + "ab" * 32,
        "gpu": "NVIDIA H100 80GB HBM3",
        "run_s": 62.5,
    }
    return VerdictSummary(**(values | changes))


def a_change(
    submission_id: str = "s:1",
    old: Sided = None,
    new: Sided = None,
    **changes: Any,
) -> Change:
    """One submission of a batch, from these outcomes (or this summary) to those; what is not named passed."""
    values: dict[str, Any] = {
        "submission_id": submission_id,
        "level": Level.JUDGE,
        "reason": "evidence.suffices",
        "old": _summary(submission_id, old, "v"),
        "new": _summary(submission_id, new, "w"),
    }
    return Change(**(values | changes))


def pending(submission_id: str = "s:1", state: ItemState = ItemState.WAITING, **changes: Any) -> Change:
    """One submission of a batch that has no new verdict yet."""
    change = a_change(submission_id, **changes)
    return change.model_copy(update={"new": None, "state": state})


def repeated(submission_id: str, *results: Sided, **changes: Any) -> Change:
    """One submission of a batch, judged once for each of the results."""
    summaries = tuple(_summary(submission_id, result, f"w{number}") for number, result in enumerate(results))
    return a_change(submission_id, new=summaries[0], repeats=summaries, **changes)


def _summary(submission_id: str, given: Sided, prefix: str) -> VerdictSummary:
    if isinstance(given, VerdictSummary):
        return given
    return a_summary(submission_id, given, verdict_id=f"{prefix}:{submission_id}")


def a_batch(**changes: Any) -> Batch:
    """A batch that raises the threshold of the ratio."""
    values: dict[str, Any] = {
        "batch_id": "b-20260921-1",
        "state": BatchState.FINISHED,
        "reason": "the threshold was 1.1 and should be 1.3",
        "author": "operator:ada",
        "created_at": MOMENT,
        "selection": Selection(cohorts=("2026-fall",), labs=("dali-pipelines",)),
        "level": "auto",
        "labs": (
            BatchLab(
                lab="dali-pipelines",
                version="1.2.0",
                sha256="cd" * 32,
                form="toml",
                origin="dali-pipelines.toml",
                check_versions=dict.fromkeys(CHECKS, "1.0.0"),
            ),
        ),
        "estimate": Estimate(
            counts=(
                LevelCount(
                    level=Level.JUDGE,
                    reason="evidence.suffices",
                    text="the stored evidence holds all that the checks ask for",
                    submissions=3,
                ),
            ),
            selected=3,
            items=3,
            gpu_s=0.0,
            eta_s=1.0,
        ),
    }
    return Batch(**(values | changes))


def a_diff(changes: Iterable[Change], batch: Batch | None = None, **options: Any) -> Diff:
    """What such a batch changes."""
    return diff_of(batch or a_batch(), a_progress(), changes, **options)


def a_progress(**changes: Any) -> Progress:
    """A batch with all of its three items done."""
    values: dict[str, Any] = {
        "batch_id": "b-20260921-1",
        "state": BatchState.FINISHED,
        "counts": {ItemState.DONE: 3},
    }
    return Progress(**(values | changes))


def worst(checks: Any) -> str:
    """The outcome that stands for those of several checks; `passed` where there are none."""
    present = {check.outcome.value for check in checks}
    return next((outcome for outcome in _WORST_FIRST if outcome in present), "passed")


def total(checks: Any) -> float | None:
    """Their points together; null where one of them is not known."""
    scores = [check.score for check in checks]
    return None if None in scores else sum(scores)
