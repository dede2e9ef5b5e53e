"""The check `throughput_ratio`: DALI beats the PyTorch baseline on the same held-out images, by our clock."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from checks.api import API_VERSION, CheckResult, failed, passed, undecided
from checks.codes import NO_DALI, NOT_CARRIED, STOPPED, common
from checks.diagnosis import silent_mistakes
from checks.not_carried import no_dali
from checks.stopped import no_evidence, stopped_before
from checks.throughput_ratio import by_content, wording
from checks.throughput_ratio.causes import likely_causes
from checks.throughput_ratio.context import Context, context_of
from checks.throughput_ratio.gpu_decoding import why_unseen
from grader_service.model.base import LongText, Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.measurement import Decision, HostEffect, Measurement
from grader_service.model.verdict import Outcome, Tier
from grader_service.sequential_test import allow_for_host, replay

_MOST_SILENT = 2
"""Silent mistakes that are told beside the causes; staff see all of them."""


class Params(Wire):
    """Threshold of the lab."""

    threshold: Annotated[float, Field(gt=0)] = 1.1


class Observation(Wire):
    """Every block that was timed."""

    measurement: Measurement
    context: Context | None = None
    """What may explain the rates; never an input to the outcome."""
    silent: Annotated[tuple[LongText, ...], Field(max_length=64)] = ()
    """Mistakes that raised nothing, as `checks.diagnosis` tells them from the evidence; never an input either."""


class ThroughputRatioCheck:
    """Judges whether the learner's DALI pipeline delivers more than 1.1 times the images of its PyTorch baseline.

    Evidence:
        blocks: per block, `ln(DALI / effective baseline)` from images per second by the host's clock, both on the same
            held-out JPEGs. The baseline is the learner's loader, never less than 0.95 of the reference at its declared
            settings and 0.91 of the reference at fair ones. Where the learner's own code was timed, a ratio that is too
            low only because a reference was believed by more than 0.7 is `inconclusive`.
        Where nobody could pass on the host, by its own reference ratio, the outcome is `inconclusive`, and failed only
            where it is below half of that ratio.
    Points: all or nothing; `inconclusive` has none.
    Errors: at a true ratio equal to the threshold, at most 0.5 % false accepts over all attempts of a learner (the
        error budget of the test); see `grader_service.sequential_test` and `bench/decision.py`.
    Cannot detect: a pipeline that is fast on our images and slow on the learner's own.
    """

    id: ClassVar[str] = "throughput_ratio"
    version: ClassVar[str] = "1.5.1"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Throughput of DALI against PyTorch"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM, Need.MEASUREMENT})
    codes: ClassVar[Mapping[str, str]] = common("ratio", STOPPED, NO_DALI, NOT_CARRIED) | {
        "ratio.ok": "DALI is faster than the threshold asks",
        "ratio.too_low": "DALI is not faster than the threshold asks",
        "ratio.inconclusive": "inconclusive: the measurement does not allow a decision",
        "ratio.host_cannot_show_effect": "inconclusive: nobody could pass on this machine",
        "ratio.host_unsteady": "inconclusive: the machine was not steady enough to time anything",
        "ratio.dali_stopped": "unverified: the DALI code stopped while it was timed",
        "ratio.not_measured": "error: the throughput was not measured",
        "ratio.independent": "the images do not depend on the files",
        "ratio.unlike": "the images differ from what the whole files give",
        "ratio.unclear": "inconclusive: images do not depend on their own files as they should",
        "ratio.not_examined": "inconclusive: what the graph does could not be told",
        "ratio.replayed": "images came again instead of being decoded",
        "ratio.partial_decode": "images were decoded at reduced resolution",
        "ratio.rendered": "images were not decoded from the files",
        "ratio.small_area": "inconclusive or unverified: much less of each file was decoded or shown than usual",
        "ratio.stale": "unverified: most images had been given to the code before",
        "ratio.not_seen": "unverified: the GPU was not seen to decode",
        "ratio.wrong_content": "unverified: the images were not recognised as those given",
    }
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
        if room.problem is not None and (result := by_content.not_run(room, evidence.measurement)) is not None:
            return result
        if evidence.measurement is None:
            return undecided(Outcome.ERROR, "ratio.not_measured", "The throughput was not measured; this is our fault.")
        return Observation(
            measurement=evidence.measurement,
            context=context_of(evidence, evidence.measurement),
            silent=tuple(mistake.text for mistake in silent_mistakes(evidence)),
        )

    def judge(self, observation: Observation, params: Params) -> CheckResult:
        """See `checks.api.Check.judge`."""
        measurement = observation.measurement
        tier = Tier(measurement.tier)
        if (result := by_content.not_delivered(measurement)) is not None:
            return result
        decision = _decision(measurement, params.threshold)
        if measurement.unsteady is not None and not _reached_a_look(decision, measurement):
            return undecided(
                Outcome.INCONCLUSIVE,
                "ratio.host_unsteady",
                "The machine that graded you was not steady enough to time anything: "
                f"{measurement.unsteady}. This is not your fault and says nothing about your code; submit it again.",
                tier=tier,
                details=_for_staff(measurement),
            )
        if decision is None:
            return undecided(
                Outcome.UNVERIFIED,
                "ratio.dali_stopped",
                "Your DALI code ran in the grader and then stopped while it was being timed: "
                f"{measurement.problem or 'no reason was given'}",
                tier=Tier.CLAIMS,
                details={"blocks": len(measurement.blocks)},
            )
        causes = likely_causes(measurement, decision, observation.context)
        details = {
            "decision": decision.model_dump(mode="json"),
            "causes": [cause._asdict() for cause in causes],
            "silent": list(observation.silent),
            **_for_staff(measurement),
        }
        text = f"{wording.explain(measurement, decision, causes)} {by_content.note(measurement)}".strip()
        if decision.outcome == "passed":
            if tier is not Tier.GRAPH and (why := why_unseen(measurement)) is not None:
                return undecided(Outcome.UNVERIFIED, "ratio.not_seen", f"{text} {why}", tier=tier, details=details)
            return passed("ratio.ok", text, tier=tier, details=details)
        text = " ".join((text, *observation.silent[:_MOST_SILENT]))
        if decision.outcome == "failed" and (why := by_content.softened(measurement, decision)) is not None:
            return undecided(Outcome.INCONCLUSIVE, "ratio.inconclusive", f"{text} {why}", tier=tier, details=details)
        if decision.outcome == "failed":
            return failed("ratio.too_low", text, tier=tier, details=details)
        if decision.reason is not None and measurement.host is not None:
            text = f"{_weak_host(measurement.host)} {text}"
            return undecided(Outcome.INCONCLUSIVE, f"ratio.{decision.reason}", text, tier=tier, details=details)
        return undecided(Outcome.INCONCLUSIVE, "ratio.inconclusive", text, tier=tier, details=details)


def _decision(measurement: Measurement, threshold: float) -> Decision | None:
    """The sequential test over the stored blocks, as it ran or as it would have run, and what the host could show."""
    ratios = [block.log_ratio for block in measurement.blocks if block.spoiled is None]
    decision = replay(ratios, measurement.plan, threshold, attempt=measurement.attempt)
    return None if decision is None else allow_for_host(decision, measurement.host, measurement.plan)


def _weak_host(host: HostEffect) -> str:
    return (
        "The machine that graded you cannot show the effect: with the same job our own DALI graph delivered only "
        f"{host.ratio:.2f} times the images of our own PyTorch loader there, so this is not counted as a failure."
    )


def _reached_a_look(decision: Decision | None, measurement: Measurement) -> bool:
    """Whether the test itself answered; what is made of fewer blocks than it wanted is no answer."""
    return (
        decision is not None
        and decision.outcome != "inconclusive"
        and decision.blocks_used in measurement.plan.stops(measurement.attempt)
    )


def _for_staff(measurement: Measurement) -> dict[str, object]:
    """Contradictions and discarded blocks; empty when there are none."""
    details: dict[str, object] = {}
    if measurement.corroboration is not None and measurement.corroboration.flags:
        details["flags"] = list(measurement.corroboration.flags)
    discarded = {f"block {block.index + 1}": block.spoiled for block in measurement.blocks if block.spoiled is not None}
    if discarded:
        details["discarded"] = discarded
    return details


CHECK = ThroughputRatioCheck()
