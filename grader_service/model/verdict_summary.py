"""What a verdict says, in a few hundred bytes: enough to compare thousands without opening a single document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from grader_service.model.base import Code, Identifier, ShortText, Wire
from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import ImagesPerSecond
from grader_service.model.verdict import Mode, Outcome, Status, StepVerdict, Tier, Verdict


class CheckSummary(Wire):
    """One check's part."""

    id: Identifier
    step: Identifier
    version: ShortText
    outcome: Outcome
    code: Code
    score: Annotated[float, Field(ge=0)] | None
    """Points; null where the check could not decide. What was not reached earned 0."""
    max_score: Annotated[float, Field(ge=0)]
    tier: Tier | None = None

    @property
    def counted(self) -> Outcome:
        """As what its outcome counts: what was not reached is a failure."""
        return self.outcome.counted(self.score)


class RatioSummary(Wire):
    """The measured ratio of DALI over the effective baseline, with its confidence interval."""

    ratio: Annotated[float, Field(gt=0)]
    low: Annotated[float, Field(gt=0)]
    high: Annotated[float, Field(gt=0)]


class RateSummary(Wire):
    """Images per second of one arm: median over blocks, lowest and highest."""

    median: ImagesPerSecond
    low: ImagesPerSecond
    high: ImagesPerSecond


class VerdictSummary(Wire):
    """A verdict without its texts."""

    verdict_id: Identifier
    submission_id: Identifier
    run_id: Identifier
    lab: Identifier
    lab_version: ShortText | None
    learner: ShortText | None
    cohort: ShortText | None
    mode: Mode
    status: Status
    code: Code
    score: Annotated[float, Field(ge=0)] | None
    max_score: Annotated[float, Field(gt=0)] | None
    created_at: float
    """Seconds since 1970."""
    steps: tuple[StepVerdict, ...] = ()
    checks: tuple[CheckSummary, ...] = ()
    ratio: RatioSummary | None = None
    rates: Mapping[str, RateSummary] = Field(default_factory=dict)
    """By arm: `dali`, `learner`, `reference_declared`, …"""
    image_digest: ShortText | None = None
    gpu: ShortText | None = None
    """Model of the GPU; null in a rehearsal."""
    run_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds that the whole run took by the host's clock; null when it was not timed."""
    gpu_held_s: Annotated[float, Field(ge=0)] | None = None
    """Seconds for which it had a GPU; null in a rehearsal."""
    measured_by: Mapping[str, object] | None = None
    """The measurement plan of its run, every value written out, since a default may be another one tomorrow; null where
    nothing was measured."""


class RunSummary(BaseModel):
    """What a summary says of its run; the rest of it is passed over, unread."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    run_s: Annotated[float, Field(ge=0)] | None = None
    measured_by: Mapping[str, object] | None = None


@dataclass(frozen=True)
class CohortEntry:
    """One graded submission with the summary of the verdict in force."""

    summary: VerdictSummary
    received_at: float
    """Seconds since 1970."""
    submitted_at: float | None
    """The same, by the platform's clock."""
    filename: str
    """As the learner named it."""


def every_value(plan: MeasurementPlan) -> Mapping[str, object]:
    """A measurement plan as `VerdictSummary.measured_by` has it."""
    return plan.model_dump(mode="json")


def summary_of(verdict: Verdict) -> VerdictSummary:
    """The comparable part of a verdict."""
    measurement, provenance = verdict.measurement, verdict.provenance
    decision = measurement.decision if measurement is not None else None
    model = (provenance.gpu or {}).get("model")
    return VerdictSummary(
        verdict_id=verdict.verdict_id,
        submission_id=verdict.submission_id,
        run_id=verdict.run_id,
        lab=verdict.lab,
        lab_version=provenance.lab_version,
        learner=verdict.learner,
        cohort=verdict.cohort,
        mode=verdict.mode,
        status=verdict.status,
        code=verdict.code,
        score=verdict.score,
        max_score=verdict.max_score,
        created_at=verdict.created_at.timestamp(),
        # Titles are texts: a lab that words one anew changes nothing of what came out.
        steps=tuple(step.model_copy(update={"title": None}) for step in verdict.steps),
        checks=tuple(
            CheckSummary(
                id=check.id,
                step=check.step,
                version=check.version,
                outcome=check.outcome,
                code=check.code,
                score=check.score,
                max_score=check.max_score,
                tier=check.tier,
            )
            for check in verdict.checks
        ),
        ratio=RatioSummary(ratio=decision.ratio, low=decision.interval.low, high=decision.interval.high)
        if decision is not None
        else None,
        rates={
            report.arm.value: RateSummary(median=report.images_per_s, low=report.low, high=report.high)
            for report in (measurement.arms if measurement is not None else ())
            if report.images_per_s is not None and report.low is not None and report.high is not None
        },
        image_digest=provenance.image_digest,
        gpu=str(model)[:200] if model is not None else None,
        run_s=sum(provenance.timings_s.values()) if provenance.timings_s else None,
        gpu_held_s=provenance.gpu_held_s,
        measured_by=every_value(measurement.plan) if measurement is not None else None,
    )
