"""The check `throughput_ratio`: DALI beats the PyTorch baseline on the same held-out images, by our clock."""

from typing import Annotated

from pydantic import Field

from checks.api import Check, Result, failed, passed, undecided
from checks.codes import NO_DALI, NOT_CARRIED, common
from checks.not_carried import first_words, no_dali
from checks.silent_advice import silent_advice
from checks.stopped import not_reached, run_end
from checks.throughput_ratio import by_content, wording
from checks.throughput_ratio.causes import likely_causes
from checks.throughput_ratio.context import Context, context_of
from checks.throughput_ratio.gpu_decoding import unseen
from grader_service.model.base import Wire
from grader_service.model.evidence import Evidence, Need
from grader_service.model.feedback import Advice, Feedback, NextStep
from grader_service.model.measurement import Decision, Measurement
from grader_service.model.verdict import Outcome, Tier
from grader_service.sequential_test import allow_for_host, replay

_SHORT_EPOCH = "advice.tiny_epoch"
_EPOCHS = frozenset({"epoch_in_queue", "no_warm_up", "workers_start"})
"""Causes that name a short epoch, too."""


class Params(Wire):
    """Threshold of the lab."""

    threshold: Annotated[float, Field(gt=0)] = 1.1


class Observation(Wire):
    """Every block that was timed."""

    measurement: Measurement
    context: Context | None = None
    """What may explain the rates; never an input to the outcome."""
    silent: Annotated[tuple[Advice, ...], Field(max_length=64)] = ()
    """Mistakes in the learner's own measurement that raised nothing; never an input either."""


class ThroughputRatioCheck(Check[Params, Observation]):
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

    id = "throughput_ratio"
    version = "1.7.1"
    title = "Throughput of DALI against PyTorch"
    word = "ratio"
    needs = frozenset({Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM, Need.MEASUREMENT})
    codes = common("ratio", NO_DALI, NOT_CARRIED) | {
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

    def observe(self, evidence: Evidence) -> Observation | Result:
        """See `checks.api.Check.observe`."""
        discovery, room = evidence.discovery, evidence.clean_room
        if discovery is None:
            return not_reached()
        if (result := no_dali("ratio", discovery)) is not None:
            return result
        if room is None:
            return not_reached()
        ended = run_end(discovery)
        if room.problem is not None and (result := by_content.not_run(room, evidence.measurement, ended)) is not None:
            return result
        if evidence.measurement is None:
            return undecided(Outcome.ERROR, "ratio.not_measured", "The throughput was not measured; this is our fault.")
        return Observation(
            measurement=evidence.measurement,
            context=context_of(evidence, evidence.measurement),
            silent=tuple(silent_advice(evidence, "rates")),
        )

    def judge(self, observation: Observation, params: Params) -> Result:
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
                wording.unsteady_host(measurement.unsteady),
                tier=tier,
                details=_for_staff(measurement),
            )
        if decision is None:
            return undecided(
                Outcome.UNVERIFIED,
                "ratio.dali_stopped",
                Feedback(
                    outcome="Your DALI code ran in the grader, and stopped while it was timed.",
                    seen=first_words(measurement.problem or "No reason was given."),
                    next=NextStep(
                        text="Run it over a folder of other JPEGs for several epochs, and see where it stops."
                    ),
                ),
                tier=Tier.CLAIMS,
                details={"blocks": len(measurement.blocks)},
            )
        causes = likely_causes(measurement, decision, observation.context)
        details = {
            "decision": decision.model_dump(mode="json"),
            "causes": [cause._asdict() for cause in causes],
            "silent": [one.code for one in observation.silent],
            **_for_staff(measurement),
        }
        epochs_told = not _EPOCHS.isdisjoint(cause.code for cause in causes)
        silent = [one for one in observation.silent if not (epochs_told and one.code == _SHORT_EPOCH)]
        advice = [
            *wording.advice_on(measurement, causes, passed=decision.outcome == "passed"),
            *silent,
            *wording.how_timed(measurement),
        ]
        if decision.outcome == "passed":
            if tier is not Tier.GRAPH and (doubt := unseen(measurement, decision)) is not None:
                told = doubt.model_copy(update={"advice": wording.how_timed(measurement)})
                return undecided(Outcome.UNVERIFIED, "ratio.not_seen", told, tier=tier, details=details)
            return passed(wording.fast_enough(measurement, decision, advice), tier=tier, details=details)
        if decision.outcome == "failed":
            if (softer := by_content.softened(measurement, decision)) is not None:
                told = softer.model_copy(update={"advice": wording.how_timed(measurement)})
                return undecided(Outcome.INCONCLUSIVE, "ratio.inconclusive", told, tier=tier, details=details)
            first = next((cause for cause in causes if cause.about == "graph"), None)
            rest = [one for one in advice if first is None or one.code != f"advice.{first.code}"]
            told = wording.too_slow(measurement, decision, first, rest)
            return failed("ratio.too_low", told, tier=tier, details=details)
        if decision.reason is not None and measurement.host is not None:
            told = wording.weak_host(measurement, decision, measurement.host)
            return undecided(Outcome.INCONCLUSIVE, f"ratio.{decision.reason}", told, tier=tier, details=details)
        told = wording.not_decided(measurement, decision, advice)
        return undecided(Outcome.INCONCLUSIVE, "ratio.inconclusive", told, tier=tier, details=details)


def _decision(measurement: Measurement, threshold: float) -> Decision | None:
    """The sequential test over the stored blocks, as it ran or as it would have run, and what the host could show."""
    ratios = [block.log_ratio for block in measurement.blocks if block.spoiled is None]
    decision = replay(ratios, measurement.plan, threshold, attempt=measurement.attempt)
    return None if decision is None else allow_for_host(decision, measurement.host, measurement.plan)


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
