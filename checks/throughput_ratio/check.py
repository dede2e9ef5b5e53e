"""The check `throughput_ratio`: DALI beats the PyTorch baseline on the same held-out images, by our clock."""

from typing import Annotated, ClassVar

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.not_carried import no_dali, not_carried
from checks.stopped import no_evidence, stopped_before
from checks.throughput_ratio import wording
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.measurement import Decision, Measurement
from grader_service.model.verdict import Outcome, Tier
from grader_service.sequential_test import decide


class Params(Wire):
    """Threshold of the lab."""

    threshold: Annotated[float, Field(gt=0)] = 1.1


class Observation(Wire):
    """Every block that was timed."""

    measurement: Measurement


class ThroughputRatioCheck:
    """Judges whether the learner's DALI pipeline delivers more than 1.1 times the images of its PyTorch baseline.

    Evidence:
        blocks: per block, `ln(DALI / effective baseline)` from images per second by the host's clock, both on the same
            held-out JPEGs. The baseline is the learner's loader, never less than 0.95 of the reference at its declared
            settings and 0.91 of the reference at fair ones.
    Points: all or nothing; `inconclusive` has none.
    Errors: at a true ratio equal to the threshold, at most 0.5 % false accepts (the error budget of the test); see
        `grader_service.sequential_test`.
    Cannot detect: a pipeline that is fast on our images and slow on the learner's own.
    """

    id: ClassVar[str] = "throughput_ratio"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Throughput of DALI against PyTorch"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM, Need.MEASUREMENT})
    params_model = Params
    observation_model = Observation

    def observe(self, evidence: Evidence) -> Observation | CheckResult:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return no_evidence(evidence, "ratio")
        if (result := no_dali("ratio", discovery, stopped_before(discovery))) is not None:
            return result
        if room is None:
            return no_evidence(evidence, "ratio")
        if room.problem is not None:
            return not_carried("ratio", room)
        if evidence.measurement is None:
            return undecided(Outcome.ERROR, "ratio.not_measured", "The throughput was not measured; this is our fault.")
        return Observation(measurement=evidence.measurement)

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        measurement = observation.measurement
        decision = _decision(measurement, params.threshold)
        if decision is None:
            return undecided(
                Outcome.UNVERIFIED,
                "ratio.dali_stopped",
                "Your DALI graph ran in the clean room and then stopped while it was being timed: "
                f"{measurement.problem or 'no reason was given'}",
                tier=Tier.CLAIMS,
                details={"blocks": len(measurement.blocks)},
            )
        details = {"decision": decision.model_dump(mode="json")}
        text = wording.explain(measurement, decision)
        if decision.outcome == "passed":
            return passed("ratio.ok", text, tier=Tier.GRAPH, details=details)
        if decision.outcome == "failed":
            return failed("ratio.too_low", text, tier=Tier.GRAPH, details=details)
        return undecided(Outcome.INCONCLUSIVE, "ratio.inconclusive", text, tier=Tier.GRAPH, details=details)


def _decision(measurement: Measurement, threshold: float) -> Decision | None:
    """The sequential test over the stored blocks, look by look, as it ran or as it would have run."""
    ratios = [block.log_ratio for block in measurement.blocks if block.spoiled is None]
    for size in measurement.plan.looks:
        if size <= len(ratios) and (decision := decide(ratios[:size], measurement.plan, threshold)) is not None:
            return decision
    return decide(ratios, measurement.plan, threshold, last=True)


CHECK = ThroughputRatioCheck()
