"""Whether the GPU was seen to decode while the learner's own code was timed (tiers B and C); pure.

The pixels say that images were decoded, not by whom: a DataLoader that is handed out as a DALI iterator delivers the
same ones. So a pass needs what the host saw of the GPU itself.
"""

from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.measurement import REFERENCES, Arm, Decision, GpuUse, Measurement

MOVED_PERCENT = 0.2
"""Mean use of the JPEG engine, which NVML gives in whole percent: without decoding every sample is 0."""
KERNELS_PERCENT = 5.0
"""The same of the SMs, on GPUs without a JPEG engine: copying batches makes about 1 %."""
_TIMES = 4.0
"""How much more it is than while our DataLoaders ran, whose windows show what else is on the GPU."""


def unseen(measurement: Measurement, decision: Decision) -> Feedback | None:
    """Why a fast rate of the learner's own code is no pass, for the learner; None where the GPU decoded meanwhile."""
    found = _unseen(measurement)
    if found is None:
        return None
    seen, action = found
    return Feedback(
        outcome=f"Your own DALI code delivered {decision.ratio:.2f} times the images of the baseline, and it cannot be "
        "told whether DALI decoded them.",
        seen=seen,
        next=NextStep(text=action),
        numbers={"ratio": decision.ratio, "needed": decision.threshold},
    )


def _unseen(measurement: Measurement) -> tuple[str, str] | None:
    if measurement.device == "cpu":
        return "A rehearsal has no GPU that could be watched.", "Hand it in: an official grading can pass it."
    uses = {use.arm: use for use in (measurement.corroboration.uses if measurement.corroboration else ())}
    dali = uses.get(Arm.DALI)
    others = [uses[arm] for arm in REFERENCES if arm in uses and uses[arm].samples]
    if dali is None or not dali.samples or not others:
        return (
            "The GPU could not be watched while your code was timed, which is not your fault.",
            "Hand it in again, or let a person look at it.",
        )
    if _decoded(dali, others):
        return None
    return (
        f"While your code was timed the GPU decoded no images ({_seen(dali)}).",
        "Decode with fn.decoders.image(..., device='mixed') in build_dali_iterator, or build the pipeline from "
        "fn.readers.file and other native operators.",
    )


def _decoded(dali: GpuUse, others: list[GpuUse]) -> bool:
    engine = dali.jpg_percent is not None
    least = MOVED_PERCENT if engine else KERNELS_PERCENT
    own, *rest = [(use.jpg_percent if engine else use.sm_percent) or 0.0 for use in (dali, *others)]
    return own >= max(least, _TIMES * max(rest))


def _seen(dali: GpuUse) -> str:
    kernels = "unknown" if dali.sm_percent is None else f"{dali.sm_percent:.0f} %"
    return f"SM {kernels}" if dali.jpg_percent is None else f"JPEG engine {dali.jpg_percent:.0f} %, SM {kernels}"
