"""Whether the GPU was seen to decode while the learner's own code was timed (tiers B and C); pure.

The pixels say that images were decoded, not by whom: a DataLoader that is handed out as a DALI iterator delivers the
same ones. So a pass needs what the host saw of the GPU itself.
"""

from grader_service.model.measurement import REFERENCES, Arm, Measurement

MOVED_PERCENT = 0.2
"""Mean use of the JPEG engine, which NVML gives in whole percent: without decoding every sample is 0."""
KERNELS_PERCENT = 5.0
"""The same of the SMs, on GPUs without a JPEG engine: copying batches makes about 1 %."""
_TIMES = 4.0
"""How much more it is than while our DataLoaders ran, whose windows show what else is on the GPU."""


def unseen(measurement: Measurement) -> tuple[str, str] | None:
    """Why a fast rate of the learner's own code is no pass, and what to do; None where the GPU decoded meanwhile."""
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
    engine = dali.jpg_percent is not None
    own, *rest = [(use.jpg_percent if engine else use.sm_percent) or 0.0 for use in (dali, *others)]
    if own >= max(MOVED_PERCENT if engine else KERNELS_PERCENT, _TIMES * max(rest)):
        return None
    kernels = "SM unknown" if dali.sm_percent is None else f"SM {dali.sm_percent:.0f} %"
    seen = f"JPEG engine {dali.jpg_percent:.0f} %, {kernels}" if engine else kernels
    return (
        f"While your code was timed the GPU decoded no images ({seen}).",
        "Decode with fn.decoders.image(..., device='mixed') in build_dali_iterator, or build the pipeline from "
        "fn.readers.file and other native operators.",
    )
