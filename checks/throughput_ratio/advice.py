"""Advice beside the ratio: what may explain the rates and the learner's own figures, and how its code was timed."""

from collections.abc import Sequence

from checks.api import Advice, Severity
from checks.throughput_ratio.causes import CLEARLY_SLOWER, FAR_OFF, Cause, times_of
from grader_service.model.measurement import REFERENCES, Arm, ClaimBesideMeasurement, Measurement

_MOST_ADVICE = 4
"""More than that is not read."""
_MOST_BESIDE_A_PASS = 1


def advice_on(measurement: Measurement, causes: Sequence[Cause], *, passed: bool) -> list[Advice]:
    """What may explain the rates, the most telling first; then what is to be known of the baseline and the claims."""
    found = [Advice(code=f"advice.{cause.code}", text=cause.text, next=cause.action) for cause in causes]
    # With its cause where there is one: a pass shows a single piece of advice.
    place = next((number for number, cause in enumerate(causes) if cause.about == "baseline"), None)
    baseline = _baseline(measurement, "Your DataLoader" if place is None else "It")
    if baseline is not None and place is not None:
        found[place] = found[place].model_copy(update={"text": f"{found[place].text} {baseline.text}"})
    elif baseline is not None:
        found.append(baseline)
    explained = {cause.about for cause in causes}
    claims = (_claim(claim) for claim in measurement.claims if claim.name not in explained)
    found += [one for one in claims if one is not None]
    return found[: _MOST_BESIDE_A_PASS if passed else _MOST_ADVICE]


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


def _baseline(measurement: Measurement, loader: str) -> Advice | None:
    """What is to be known of the baseline; `loader` is what a sentence calls the learner's."""
    own = next((arm for arm in measurement.arms if arm.arm is Arm.LEARNER), None)
    if own is None or own.images_per_s is None:
        why = own.notes[0] if own is not None and own.notes else "no DataLoader was found"
        text = f"Your own DataLoader was not timed ({why}), so our reference was the baseline."
        return Advice(code="advice.baseline_not_timed", text=text, next="Keep the DataLoader in a variable.")
    best = max((arm.images_per_s or 0.0 for arm in measurement.arms if arm.arm in REFERENCES), default=0.0)
    if own.images_per_s >= CLEARLY_SLOWER * best:
        return None
    text = f"{loader} reaches {own.images_per_s / best:.0%} of our reference, which set the baseline instead."
    return Advice(code="advice.baseline_slow", severity=Severity.NOTE, text=text)


def _claim(claim: ClaimBesideMeasurement) -> Advice | None:
    times = times_of(claim)
    if times is None or 1 / FAR_OFF <= times <= FAR_OFF:
        return None
    if times < 1:
        action = "If workers start or the pipeline is built while your clock runs, do that before."
    elif claim.name == "dali_throughput":
        action = "Time a hundred batches or more, after a warm-up: the first ones are decoded ahead."
    else:
        action = "Count each batch once, and keep the copy to the GPU inside the timed part."
    text = f"Your `{claim.name}` says {claim.claimed:,.0f} images/s; we measured {claim.measured:,.0f}."
    return Advice(code=f"advice.{claim.name}_off", text=text, next=action)
