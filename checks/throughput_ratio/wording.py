"""Words for a measurement: what was seen, against what, and why it may differ from the learner's own figures."""

from collections.abc import Sequence

from checks.throughput_ratio.causes import CLEARLY_SLOWER, FAR_OFF, Cause
from grader_service.model.measurement import REFERENCES, Arm, ClaimBesideMeasurement, Decision, Measurement

_MOST_CAUSES = 3
"""More than that is not read."""


def explain(measurement: Measurement, decision: Decision, causes: Sequence[Cause] = ()) -> str:
    """Result, interval, arms, claims, the first causes and the next step, for the learner.

    Args:
        measurement: arms and claims.
        decision: the outcome of the test.
        causes: see `causes.likely_causes`, the most telling first; each stands behind what it explains.
    """
    told = list(causes[:_MOST_CAUSES])
    return " ".join(
        part
        for part in (
            _result(measurement, decision),
            _arms(measurement),
            _baseline(measurement),
            *_texts(told, "baseline"),
            *(
                part
                for claim in measurement.claims
                for part in (_claim(claim, explained=_has(told, claim.name)), *_texts(told, claim.name))
            ),
            *_texts(told, "batch"),
            *_texts(told, "graph"),
            "" if _has(told, "graph") and decision.outcome == "failed" else _next_step(decision),
        )
        if part
    )


def _texts(causes: Sequence[Cause], about: str) -> list[str]:
    return [cause.text for cause in causes if cause.about == about]


def _has(causes: Sequence[Cause], about: str) -> bool:
    return any(cause.about == about for cause in causes)


def _result(measurement: Measurement, decision: Decision) -> str:
    interval = decision.interval
    open_still = f"which neither shows nor rules out a ratio above {decision.threshold:g}"
    if not interval.low <= decision.threshold <= interval.high:
        # A grade allows less error than this interval does.
        open_still = (
            f"which points {'above' if interval.low > decision.threshold else 'below'} {decision.threshold:g}, but the "
            "blocks are too few, or differ too much from each other, for a grade to rest on them"
        )
    verb = {
        "passed": f"which is above {decision.threshold:g}",
        "failed": f"which is not above {decision.threshold:g}",
        "inconclusive": open_still,
    }["failed" if decision.reason is not None else decision.outcome]
    return (
        f"On {measurement.images} held-out JPEGs DALI delivered {decision.ratio:.2f} times the images of the baseline "
        f"({interval.confidence:.0%} interval {interval.low:.2f} to {interval.high:.2f}, "
        f"{decision.blocks_used} blocks), {verb}."
    )


def _arms(measurement: Measurement) -> str:
    names = {
        Arm.DALI: "your DALI graph" if measurement.tier == "A" else "your DALI code",
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
    best = max((arm.images_per_s or 0.0 for arm in measurement.arms if arm.arm in REFERENCES), default=0.0)
    if own.images_per_s < CLEARLY_SLOWER * best:
        return (
            f"Your DataLoader reaches {own.images_per_s / best:.0%} of our reference loader with the same job, so the "
            "ratio was taken against the reference."
        )
    return ""


def _claim(claim: ClaimBesideMeasurement, *, explained: bool) -> str:
    if claim.claimed is None or claim.measured is None or claim.claimed <= 0:
        return ""
    text = f"Your `{claim.name}` says {claim.claimed:,.0f} images/s; we measured {claim.measured:,.0f}"
    factor = claim.claimed / claim.measured
    if explained:
        return f"{text}."
    if factor > FAR_OFF and claim.name == "dali_throughput":
        text += (
            ": in a short benchmark the iterator's first batches are already decoded when the clock starts, so time a "
            "hundred batches or more after a warm-up"
        )
    elif factor > FAR_OFF:
        text += ": check that whole batches are counted once and that the GPU copy is inside the timed part"
    elif factor < 1 / FAR_OFF:
        text += ": starting workers or building the pipeline inside the timed part makes a short benchmark look slow"
    return text + "."


def _next_step(decision: Decision) -> str:
    if decision.outcome == "passed":
        return ""
    if decision.reason is not None:
        return "Hand it in again: it may be graded on a machine that can show more."
    if decision.outcome == "inconclusive":
        return "This is not counted as a failure; hand it in again, or make the difference larger."
    return (
        "To gain speed decode with device='mixed', let every later operator follow on the GPU, give the pipeline more "
        "threads and a larger batch, and leave out resizes that run before a crop."
    )
