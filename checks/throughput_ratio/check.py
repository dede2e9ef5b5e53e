"""The check `throughput_ratio`: DALI beats the PyTorch baseline on the same held-out images, by our clock."""

from typing import Annotated

from pydantic import Field

from checks.api import CleanRoom, Discovery, Result, Taken, check, failed, inconclusive, passed, undecided, unverified
from checks.not_carried import first_words
from checks.observations.context import Context, context_of
from checks.silent_advice import AboutRates
from checks.stopped import run_end
from checks.throughput_ratio.advice import advice_on, how_timed
from checks.throughput_ratio.by_content import not_delivered, not_run, softened, unseen
from checks.throughput_ratio.causes import Cause, likely_causes
from grader_service.measure.sequential_test import allow_for_host, replay
from grader_service.model.evidence import Need
from grader_service.model.feedback import Advice
from grader_service.model.measurement import Decision, Measurement
from grader_service.model.verdict import Outcome, Tier

_SHORT_EPOCH = "advice.tiny_epoch"
_EPOCHS = frozenset({"epoch_in_queue", "no_warm_up", "workers_start"})
"""Causes that name a short epoch, too."""
_NOTHING_COUNTED = "nothing is counted for or against you"
_FASTER = (
    "Decode with device='mixed', let every later operator follow on the GPU, and give the pipeline more threads and a "
    "larger batch:"
)

_Around = Annotated[Context, Taken(context_of, frozenset({Need.SCAN}))]
"""What may explain the rates; never an input to the outcome."""


@check(
    version="1.7.1",
    title="Throughput of DALI against PyTorch",
    word="ratio",
    tier=Tier.GRAPH,
    codes={
        "ok": "DALI is faster than the threshold asks",
        "too_low": "DALI is not faster than the threshold asks",
        "independent": "the images do not depend on the files",
        "unlike": "the images differ from what the whole files give",
        "unclear": "inconclusive: images do not depend on their own files as they should",
        "not_examined": "inconclusive: what the graph does could not be told",
        "replayed": "images came again instead of being decoded",
        "partial_decode": "images were decoded at reduced resolution",
        "rendered": "images were not decoded from the files",
        "small_area": "inconclusive or unverified: much less of each file was decoded or shown than usual",
        "stale": "unverified: most images had been given to the code before",
        "wrong_content": "unverified: the images were not recognised as those given",
    },
)
def throughput_ratio(
    room: CleanRoom,
    discovery: Discovery,
    measurement: Measurement | None,
    context: _Around,
    silent: AboutRates,
    *,
    threshold: Annotated[float, Field(gt=0)] = 1.1,
) -> Result:
    """Judges whether the DALI pipeline delivers more than `threshold` times the images of the PyTorch baseline.

    Evidence:
        blocks: per block, `ln(DALI / effective baseline)` from images per second by the host's clock, both on the same
            held-out JPEGs. The baseline is the learner's loader, never less than 0.95 of the reference at its declared
            settings and 0.91 of the reference at fair ones. Where the learner's own code was timed, a ratio that is too
            low only because a reference was believed by more than 0.7 is `inconclusive`.
        Where nobody could pass on the host, by its own reference ratio, the outcome is `inconclusive`, and failed only
            where it is below half of that ratio.
    Points: all or nothing; `inconclusive` has none.
    Errors: at a true ratio equal to the threshold, at most 0.5 % false accepts over all attempts of a learner (the
        error budget of the test); see `grader_service.measure.sequential_test` and `bench/decision.py`.
    Cannot detect: a pipeline that is fast on our images and slow on the learner's own.
    """
    if room.problem is not None and (result := not_run(room, measurement, run_end(discovery))) is not None:
        return result
    if measurement is None:
        return undecided(Outcome.ERROR, "not_measured", "The throughput was not measured; this is our fault.")
    if (result := not_delivered(measurement)) is not None:
        return result
    # The sequential test over the stored blocks, as it ran or as it would have run, and what the host could show.
    ratios = [block.log_ratio for block in measurement.blocks if block.spoiled is None]
    decision = replay(ratios, measurement.plan, threshold, attempt=measurement.attempt)
    if decision is not None:
        decision = allow_for_host(decision, measurement.host, measurement.plan)
    tier, details = Tier(measurement.tier), _for_staff(measurement)
    # What is made of fewer blocks than the test wanted is no answer.
    looks = measurement.plan.stops(measurement.attempt)
    answered = decision is not None and decision.outcome != "inconclusive" and decision.blocks_used in looks
    if measurement.unsteady is not None and not answered:
        return inconclusive(
            "host_unsteady",
            f"The machine that graded you was too busy to time anything, so {_NOTHING_COUNTED}.",
            seen=f"{measurement.unsteady[:1].upper()}{measurement.unsteady[1:]}.",
            next="Hand it in again.",
            tier=tier,
            details=details,
        )
    if decision is None:
        return unverified(
            "dali_stopped",
            "Your DALI code ran in the grader, and stopped while it was timed.",
            seen=first_words(measurement.problem or "No reason was given."),
            next="Run it over a folder of other JPEGs for several epochs, and see where it stops.",
            tier=Tier.CLAIMS,
            details={"blocks": len(measurement.blocks)},
        )
    causes = likely_causes(measurement, decision, context)
    details |= {
        "decision": decision.model_dump(mode="json"),
        "causes": [cause._asdict() for cause in causes],
        "silent": [one.code for one in silent],
    }
    epoch_told = not _EPOCHS.isdisjoint(cause.code for cause in causes)
    beside = [one for one in silent if not (epoch_told and one.code == _SHORT_EPOCH)]
    result = _decided(measurement, decision, causes, beside)
    return result.model_copy(update={"tier": tier, "details": details})


def _decided(measurement: Measurement, decision: Decision, causes: list[Cause], silent: list[Advice]) -> Result:
    """What follows from the decision of the test, with what may explain it."""
    delivered = f"DALI delivered {decision.ratio:.2f} times the images of the baseline"
    interval, needed = decision.interval, decision.threshold
    blocks = (
        f"{interval.confidence:.0%} interval {interval.low:.2f} to {interval.high:.2f}, from {decision.blocks_used} "
        f"blocks on {measurement.images} JPEGs that your code had never seen."
    )
    ratio = {"ratio": decision.ratio, "needed": needed}
    rates = {f"{arm.arm.value}_images_per_s": arm.images_per_s for arm in measurement.arms if arm.images_per_s}
    numbers = {**ratio, "low": interval.low, "high": interval.high, "blocks": decision.blocks_used, **rates}
    own_code = how_timed(measurement)
    advice = (*advice_on(measurement, causes, passed=decision.outcome == "passed"), *silent, *own_code)
    if decision.outcome == "passed":
        if measurement.tier != "A" and (doubt := unseen(measurement)) is not None:
            return unverified(
                "not_seen",
                f"Your own DALI code delivered {decision.ratio:.2f} times the images of the baseline, and it cannot be "
                "told whether DALI decoded them.",
                seen=doubt[0],
                next=doubt[1],
                advice=own_code,
                numbers=ratio,
            )
        return passed(f"{delivered}, above the {needed:g} that is needed.", seen=blocks, advice=advice, numbers=numbers)
    if decision.outcome == "failed":
        if (doubt := softened(measurement, decision)) is not None:
            return inconclusive(
                "inconclusive",
                "The ratio is too low, but what was counted beside the work could have made the difference, so "
                f"{_NOTHING_COUNTED}.",
                seen=doubt[0],
                next=doubt[1],
                advice=own_code,
                numbers=ratio,
            )
        slow = next((cause for cause in causes if cause.about == "graph"), None)
        return failed(
            "too_low",
            f"{delivered}; more than {needed:g} is needed.",
            seen=f"{blocks} {slow.text}" if slow is not None else blocks,
            next=slow.action if slow is not None else _FASTER,
            write='images = fn.decoders.image(jpegs, device="mixed")' if slow is None else "",
            advice=tuple(one for one in advice if slow is None or one.code != f"advice.{slow.code}"),
            numbers=numbers,
        )
    if decision.reason is not None and measurement.host is not None:
        return inconclusive(
            "host_cannot_show_effect",
            f"The machine that graded you cannot show the effect, so {_NOTHING_COUNTED}.",
            seen="With the same job our own DALI graph delivered only "
            f"{measurement.host.ratio:.2f} times the images of our own PyTorch loader there. {delivered}.",
            next="Hand it in again: it may be graded on a machine that can show more.",
            numbers=numbers,
        )
    side = "on both sides of"
    if not interval.low <= needed <= interval.high:
        where = "above" if interval.low > needed else "below"
        side = f"{where} it, but too unsure for a grade to rest on them, against"
    return inconclusive(
        "inconclusive",
        f"The measurement does not allow a decision, so {_NOTHING_COUNTED}.",
        seen=f"{delivered}, and the blocks lie {side} the {needed:g} that is needed.",
        next="Hand it in again, or make the difference larger.",
        advice=advice,
        numbers=numbers,
    )


def _for_staff(measurement: Measurement) -> dict[str, object]:
    """Contradictions and discarded blocks, where there are any."""
    flags = list(measurement.corroboration.flags) if measurement.corroboration is not None else []
    discarded = {f"block {block.index + 1}": block.spoiled for block in measurement.blocks if block.spoiled is not None}
    return {name: found for name, found in (("flags", flags), ("discarded", discarded)) if found}
