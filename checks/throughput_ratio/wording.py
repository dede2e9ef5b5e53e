"""Words for a measurement: what was measured, against what, and why it may differ from the learner's own figures."""

from collections.abc import Iterable, Sequence

from checks.throughput_ratio.causes import CLEARLY_SLOWER, FAR_OFF, Cause
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.measurement import REFERENCES, Arm, ClaimBesideMeasurement, Decision, HostEffect, Measurement

_MOST_ADVICE = 4
"""More than that is not read."""
_MOST_BESIDE_A_PASS = 1
NOTHING_COUNTED = "nothing is counted for or against you"
AGAIN = "Hand it in again: it may be graded on a machine that can show more."
_FASTER = NextStep(
    text="Decode with device='mixed', let every later operator follow on the GPU, and give the pipeline more threads "
    "and a larger batch:",
    code='images = fn.decoders.image(jpegs, device="mixed")',
)


def fast_enough(measurement: Measurement, decision: Decision, advice: Sequence[Advice]) -> Feedback:
    """Feedback for a ratio that passes."""
    return _feedback(
        measurement, decision, f"{_delivered(decision)}, above the {decision.threshold:g} that is needed.", advice
    )


def too_slow(
    measurement: Measurement, decision: Decision, holds_back: Cause | None, advice: Sequence[Advice]
) -> Feedback:
    """Feedback for a ratio that fails; `holds_back` is what slows the graph down most, where that is known."""
    outcome = f"{_delivered(decision)}; more than {decision.threshold:g} is needed."
    if holds_back is None:
        return _feedback(measurement, decision, outcome, advice, _FASTER)
    seen = f"{_interval(decision, measurement.images)} {holds_back.text}"
    return _feedback(measurement, decision, outcome, advice, NextStep(text=holds_back.action), seen)


def not_decided(measurement: Measurement, decision: Decision, advice: Sequence[Advice]) -> Feedback:
    """Feedback where the blocks do not allow a decision."""
    interval, needed = decision.interval, decision.threshold
    side = "on both sides of"
    if not interval.low <= needed <= interval.high:
        side = (
            f"{'above' if interval.low > needed else 'below'} it, but too unsure for a grade to rest on them, against"
        )
    outcome = f"The measurement does not allow a decision, so {NOTHING_COUNTED}."
    seen = f"{_delivered(decision)}, and the blocks lie {side} the {needed:g} that is needed."
    action = NextStep(text="Hand it in again, or make the difference larger.")
    return _feedback(measurement, decision, outcome, advice, action, seen)


def weak_host(measurement: Measurement, decision: Decision, host: HostEffect) -> Feedback:
    """Feedback where nobody could have passed on the machine."""
    outcome = f"The machine that graded you cannot show the effect, so {NOTHING_COUNTED}."
    seen = (
        f"With the same job our own DALI graph delivered only {host.ratio:.2f} times the images of our own PyTorch "
        f"loader there. {_delivered(decision)}."
    )
    return _feedback(measurement, decision, outcome, (), NextStep(text=AGAIN), seen)


def unsteady_host(why: str) -> Feedback:
    """Feedback where the machine was disturbed."""
    return Feedback(
        outcome=f"The machine that graded you was too busy to time anything, so {NOTHING_COUNTED}.",
        seen=f"{why[:1].upper()}{why[1:]}.",
        next=NextStep(text="Hand it in again."),
    )


def how_timed(measurement: Measurement) -> tuple[Advice, ...]:
    """How the learner's own code was timed, where its graph could not be run by the grader; nothing for a graph."""
    if measurement.tier == "A":
        return ()
    how = "built anew for every window" if measurement.tier == "C" else "with new images put under it while it ran"
    text = (
        f"The grader could not run your graph, so it timed `build_dali_iterator` itself, {how}; only images that were "
        "new to it were counted, and every batch was handed over, as those of the DataLoader."
    )
    return (Advice(code="advice.own_code_timed", severity=Severity.NOTE, text=text),)


def advice_on(measurement: Measurement, causes: Iterable[Cause], *, passed: bool) -> list[Advice]:
    """What may explain the rates, the most telling first; then what is to be known of the baseline and the claims."""
    told = list(causes)
    found = [Advice(code=f"advice.{cause.code}", text=cause.text, next=cause.action) for cause in told]
    explained = {cause.about for cause in told}
    # With its cause where there is one: a pass shows a single piece of advice.
    place = next((number for number, cause in enumerate(told) if cause.about == "baseline"), None)
    for one in _baseline(measurement, "Your DataLoader" if place is None else "It"):
        if place is None:
            found.append(one)
        else:
            found[place] = found[place].model_copy(update={"text": f"{found[place].text} {one.text}"})
    found += [one for claim in measurement.claims if claim.name not in explained for one in _claim(claim)]
    return found[: _MOST_BESIDE_A_PASS if passed else _MOST_ADVICE]


def _feedback(
    measurement: Measurement,
    decision: Decision,
    outcome: str,
    advice: Sequence[Advice],
    action: NextStep | None = None,
    seen: str = "",
) -> Feedback:
    interval = decision.interval
    rates = {f"{arm.arm.value}_images_per_s": arm.images_per_s for arm in measurement.arms if arm.images_per_s}
    return Feedback(
        outcome=outcome,
        seen=seen or _interval(decision, measurement.images),
        next=action,
        advice=tuple(advice),
        numbers={
            "ratio": decision.ratio,
            "low": interval.low,
            "high": interval.high,
            "needed": decision.threshold,
            "blocks": decision.blocks_used,
            **rates,
        },
    )


def _delivered(decision: Decision) -> str:
    return f"DALI delivered {decision.ratio:.2f} times the images of the baseline"


def _interval(decision: Decision, images: int) -> str:
    found = decision.interval
    return (
        f"{found.confidence:.0%} interval {found.low:.2f} to {found.high:.2f}, from {decision.blocks_used} blocks on "
        f"{images} JPEGs that your code had never seen."
    )


def _baseline(measurement: Measurement, loader: str) -> list[Advice]:
    """What is to be known of the baseline; `loader` is what a sentence calls the learner's."""
    own = next((arm for arm in measurement.arms if arm.arm is Arm.LEARNER), None)
    if own is None or own.images_per_s is None:
        why = own.notes[0] if own is not None and own.notes else "no DataLoader was found"
        text = f"Your own DataLoader was not timed ({why}), so our reference was the baseline."
        return [Advice(code="advice.baseline_not_timed", text=text, next="Keep the DataLoader in a variable.")]
    best = max((arm.images_per_s or 0.0 for arm in measurement.arms if arm.arm in REFERENCES), default=0.0)
    if own.images_per_s >= CLEARLY_SLOWER * best:
        return []
    text = f"{loader} reaches {own.images_per_s / best:.0%} of our reference, which set the baseline instead."
    return [Advice(code="advice.baseline_slow", severity=Severity.NOTE, text=text)]


def _claim(claim: ClaimBesideMeasurement) -> list[Advice]:
    if claim.claimed is None or not claim.measured or claim.claimed <= 0:
        return []
    factor = claim.claimed / claim.measured
    if 1 / FAR_OFF <= factor <= FAR_OFF:
        return []
    if factor < 1:
        action = "If workers start or the pipeline is built while your clock runs, do that before."
    elif claim.name == "dali_throughput":
        action = "Time a hundred batches or more, after a warm-up: the first ones are decoded ahead."
    else:
        action = "Count each batch once, and keep the copy to the GPU inside the timed part."
    text = f"Your `{claim.name}` says {claim.claimed:,.0f} images/s; we measured {claim.measured:,.0f}."
    return [Advice(code=f"advice.{claim.name}_off", text=text, next=action)]
