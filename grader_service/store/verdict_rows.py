"""Verdicts as rows."""

from typing import Any

from grader_service.model.verdict import Verdict
from grader_service.model.verdict_summary import VerdictSummary
from grader_service.store.review_cases import waits


def verdict_values(
    verdict: Verdict,
    summary: VerdictSummary,
    *,
    run_id: str,
    current: bool,
    supersedes: str | None,
    batch_id: str | None = None,
    reviewed: bool = False,
) -> dict[str, Any]:
    """The columns of the verdict on a run, all but the time of the row."""
    return {
        "verdict_id": verdict.verdict_id,
        "submission_id": verdict.submission_id,
        "run_id": run_id,
        "status": verdict.status.value,
        "mode": verdict.mode.value,
        "code": verdict.code,
        "score": verdict.score,
        "max_score": verdict.max_score,
        "current": current,
        "supersedes": supersedes,
        "document": verdict.model_dump_json(),
        "summary": summary.model_dump_json(exclude_defaults=True),
        "batch_id": batch_id,
        "needs_review": waits(verdict),
        "reviewed": reviewed,
    }


def costs_of(verdict: Verdict) -> dict[str, Any]:
    """What the audit trail says of a judged run's cost: seconds of its GPU, and of each of its stages."""
    provenance = verdict.provenance
    stages = {stage: round(seconds, 3) for stage, seconds in provenance.timings_s.items()}
    return {"gpu_held_s": provenance.gpu_held_s, "timings_s": stages}
