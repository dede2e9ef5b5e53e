"""Words for a measurement: what was seen, against what, and why it may differ from the learner's own figures."""

from grader_service.model.measurement import Arm, ClaimBesideMeasurement, Decision, Measurement

_REFERENCES = (Arm.DECLARED, Arm.FAIR)
_CLEARLY_SLOWER = 0.9
"""A learner's loader at less than this share of the reference is worth a word; less than that is noise."""
_FAR_OFF = 1.5
"""A claim this many times above or below the measurement is worth an explanation."""


def explain(measurement: Measurement, decision: Decision) -> str:
    """Result, interval, arms, claims and the next step, for the learner."""
    return " ".join(
        part
        for part in (
            _result(measurement, decision),
            _arms(measurement),
            _baseline(measurement),
            *(_claim(claim) for claim in measurement.claims),
            _next_step(decision),
        )
        if part
    )


def _result(measurement: Measurement, decision: Decision) -> str:
    interval = decision.interval
    verb = {
        "passed": f"which is above {decision.threshold:g}",
        "failed": f"which is not above {decision.threshold:g}",
        "inconclusive": f"which neither shows nor rules out a ratio above {decision.threshold:g}",
    }[decision.outcome]
    return (
        f"On {measurement.images} held-out JPEGs DALI delivered {decision.ratio:.2f} times the images of the baseline "
        f"({interval.confidence:.0%} interval {interval.low:.2f} to {interval.high:.2f}, "
        f"{decision.blocks_used} blocks), {verb}."
    )


def _arms(measurement: Measurement) -> str:
    names = {
        Arm.DALI: "your DALI graph",
        Arm.LEARNER: "your DataLoader",
        Arm.DECLARED: "our reference DataLoader at your settings",
        Arm.FAIR: "our reference DataLoader at fair settings",
    }
    parts = [f"{names[a.arm]} {a.images_per_s:,.0f}" for a in measurement.arms if a.images_per_s is not None]
    return f"Images per second: {', '.join(parts)}." if parts else ""


def _baseline(measurement: Measurement) -> str:
    own = next((arm for arm in measurement.arms if arm.arm is Arm.LEARNER), None)
    if own is None or own.images_per_s is None:
        why = own.notes[0] if own is not None and own.notes else "no DataLoader was found"
        return f"Your own DataLoader was not timed ({why}), so the reference stands in for it."
    best = max((arm.images_per_s or 0.0 for arm in measurement.arms if arm.arm in _REFERENCES), default=0.0)
    if own.images_per_s < _CLEARLY_SLOWER * best:
        hint = ""
        if own.settings is not None and own.settings.num_workers == 0:
            hint = " It runs with num_workers=0: a fair baseline uses several workers."
        return (
            f"Your DataLoader reaches {own.images_per_s / best:.0%} of our reference loader with the same job, so the "
            f"ratio was taken against the reference.{hint}"
        )
    return ""


def _claim(claim: ClaimBesideMeasurement) -> str:
    if claim.claimed is None or claim.measured is None or claim.claimed <= 0:
        return ""
    text = f"Your `{claim.name}` says {claim.claimed:,.0f} images/s; we measured {claim.measured:,.0f}"
    factor = claim.claimed / claim.measured
    if factor > _FAR_OFF and claim.name == "dali_throughput":
        text += (
            ": in a short benchmark the iterator's first batches are already decoded when the clock starts, so time a "
            "hundred batches or more after a warm-up"
        )
    elif factor > _FAR_OFF:
        text += ": check that whole batches are counted once and that the GPU copy is inside the timed part"
    elif factor < 1 / _FAR_OFF:
        text += ": starting workers or building the pipeline inside the timed part makes a short benchmark look slow"
    return text + "."


def _next_step(decision: Decision) -> str:
    if decision.outcome == "passed":
        return ""
    if decision.outcome == "inconclusive":
        return "This is not counted as a failure; hand it in again, or make the difference larger."
    return (
        "To gain speed decode with device='mixed', let every later operator follow on the GPU, give the pipeline more "
        "threads and a larger batch, and leave out resizes that run before a crop."
    )
