"""Results that depend on what the learner's own code delivered (tiers B and C), or on what its graph does (A)."""

import math
import statistics
from collections.abc import Sequence

from checks.api import Advice, NextStep, Result, Severity, failed, inconclusive, unverified
from checks.not_carried import FACTORY_CALL, NEEDS_GPU, OTHER_IMAGES, first_words, not_carried
from checks.stopped import RunEnd
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import (
    REFERENCES,
    Arm,
    ContentProof,
    Decision,
    GraphProof,
    Measurement,
    TierRefused,
)
from grader_service.model.verdict import Outcome, Tier

_FACTORY = Advice(
    code="advice.no_factory",
    severity=Severity.NOTE,
    text="",
    next=f"Another way is to define `{FACTORY_CALL}`, which returns a new DALI iterator over the JPEGs below that "
    "folder: the grader can call it.",
)
_CERTAIN = {
    "replayed": "Most of the images that came had come before, so they were not decoded again.",
    "partial_decode": "They lack the finest texture of the files, so they were decoded at reduced resolution.",
    "rendered": "They have the colours of the files and not their texture, so they were not decoded from them.",
}
"""Problems that leave no doubt, each the last word of its code: what was seen."""
_UNCERTAIN = {
    "stale": (
        "Most of them are images that the code had been given earlier.",
        "Make the shuffle buffer (initial_fill, 1024 by default) smaller than the folder, and open each file anew in "
        "every epoch.",
    ),
    "small_area": (
        "They show much less of each file than a standard random crop, or seldom its lower end: that is less work.",
        "Let `build_dali_iterator` crop as torchvision's RandomResizedCrop does, or resize whole images.",
    ),
    "no_images": ("No images came.", OTHER_IMAGES),
    "not_identified": ("Most of them are none of the images in the folder.", OTHER_IMAGES),
    "no_colour": (
        "They have no colour, by which images are recognised.",
        "Let `build_dali_iterator` return RGB images.",
    ),
    "colours_changed": (
        "Their colours differ from those of the files.",
        "Leave colour augmentation out of `build_dali_iterator`, and normalise all images alike.",
    ),
}
"""Other problems: what was seen, and what to do."""
_UNKNOWN = (
    "Their texture could not be compared with the files.",
    "Leave out augmentations that blur or mix images, and deliver images of 96 pixels or more.",
)
_BELIEVED = 0.7
"""Share of a reference's rate that counts when a ratio is to fail, where the learner's own code was timed: it may do
more to an image than our references, which nobody can read. To pass, the floors of the plan count."""
_NOT_FROM_FILES = ("independent", "unlike")
"""Problems of a graph that leave no doubt (`grader_service/measure/acceptance.py`), each the last word of its code."""
_IN_DOUBT = {
    "unclear": ("unclear", "Leave out of the benchmark what replaces whole images, or let a person look at it."),
    "lesser": (
        "small_area",
        "Decode whole images (fn.decoders.image) and crop afterwards, or use fn.decoders.image_random_crop with "
        "random_area=[0.08, 1.0]: a higher rate would not mean that DALI is faster.",
    ),
    "not_examined": (
        "not_examined",
        "Leave out of the benchmark what is named here, or let a person look at it: nothing is held against you.",
    ),
}
"""Its other problems: last word of the code, and what to change."""
_MOVED_PERCENT = 0.2
"""Mean use of the JPEG engine, which NVML gives in whole percent: without decoding every sample is 0."""
_KERNELS_PERCENT = 5.0
"""The same of the SMs, on GPUs without a JPEG engine: copying batches makes about 1 %."""
_TIMES = 4.0
"""How much more it is than while our DataLoaders ran, whose windows show what else is on the GPU."""


def not_run(room: CleanRoom, measurement: Measurement | None, run: RunEnd) -> Result | None:
    """The result when neither the graph nor the learner's own code could be timed; None when something was.

    Another way is shown only to who got to the end of this one, which `run` says.
    """
    if measurement is None:
        return not_carried(room)
    if measurement.blocks:
        return None
    if measurement.content is not None and measurement.content.problem is not None:
        return _of_content(measurement.content, Tier(measurement.tier))
    base = not_carried(room)
    if base.outcome is not Outcome.UNVERIFIED:
        return base
    told = {} if room.factory_problem else _tried(measurement.refused, run)
    details = {**base.details, "tried": [entry.model_dump(mode="json") for entry in measurement.refused]}
    return base.model_copy(update={"parts": base.parts.model_copy(update=told), "details": details})


def _tried(refused: Sequence[TierRefused], run: RunEnd) -> dict[str, object]:
    """The parts of the feedback that change by what was tried beside the graph."""
    later = [entry for entry in refused if entry.tier != "A"]
    problems = {entry.problem for entry in later}
    if "no_factory" in problems:
        return {"advice": (_FACTORY,)} if run == "completed" else {}
    if "needs_gpu" in problems:
        seen = f"Your own code was tried instead, and it needs a GPU: {first_words(later[0].text)}"
        return {"seen": seen, "next": NextStep(text=NEEDS_GPU)}
    texts = " ".join(dict.fromkeys(entry.text for entry in later))
    return {"seen": f"Your own code was tried instead. {first_words(texts)}", "next": NextStep(text=OTHER_IMAGES)}


def not_delivered(measurement: Measurement) -> Result | None:
    """The result when images were timed that do not count as delivered; None when they count."""
    graph, content = measurement.graph, measurement.content
    if graph is not None and graph.problem is not None:
        return _of_graph(graph, graph.problem)
    if content is None or content.problem is None:
        return None
    return _of_content(content, Tier(measurement.tier))


def _of_graph(proof: GraphProof, problem: str) -> Result:
    """What was seen in the clean room, where no code of the learner could be misunderstood."""
    looked, seen = "The grader ran your DALI graph on other pictures before timing it", first_words(proof.note)
    details = {"graph": proof.model_dump(mode="json")}
    if problem in _NOT_FROM_FILES:
        told = f"{looked}: its images are not made of the files."
        action = "Return the decoded images of the files that fn.readers.file reads."
        return failed(problem, told, seen=seen, next=action, details=details)
    last, action = _IN_DOUBT[problem]
    return inconclusive(last, f"{looked}, and cannot tell what it does.", seen=seen, next=action, details=details)


def _of_content(content: ContentProof, tier: Tier) -> Result:
    """What was seen of the images that the learner's own code delivered, which fails only what leaves no doubt."""
    problem = content.problem or ""
    details = {"content": content.model_dump(mode="json")}
    looked = f"The grader looked at {content.delivered} images that `build_dali_iterator` delivered, and"
    if problem in _CERTAIN:
        told = f"{looked} they do not count."
        return failed(problem, told, seen=_CERTAIN[problem], next=OTHER_IMAGES, tier=tier, details=details)
    last = problem if problem in ("stale", "small_area") else "wrong_content"  # those are images of the folder
    told = f"{looked} cannot tell what they are."
    seen, action = _UNCERTAIN.get(problem, _UNKNOWN)
    return unverified(last, told, seen=seen, next=action, tier=Tier.CLAIMS, details=details)


def softened(measurement: Measurement, decision: Decision) -> tuple[str, str] | None:
    """Why a ratio that is too low is no failure, and what to do; None where it fails."""
    if measurement.tier == "C":
        return (
            "Your code keeps the files of its folder in memory, so it was built anew for every window, and building "
            "counted.",
            "Let `build_dali_iterator` open each file when its image is due, or read them with fn.readers.file.",
        )
    content = measurement.content
    if measurement.tier == "A" or content is None or not content.distinct:
        return None
    highest, needed = math.log(decision.interval.high), math.log(decision.threshold)
    uncounted = math.log((content.distinct + content.stale + content.repeated) / content.distinct)
    if highest + uncounted + _unread(measurement) <= needed:
        return None
    if highest + uncounted <= needed:
        return (
            "Your DataLoader was slower than ours, so ours was the baseline; it only decodes and resizes, and your "
            "DALI code may do more.",
            "Use as many workers in your DataLoader as there are cores: then your own is the baseline.",
        )
    return (
        f"Of {content.delivered} images that your code delivered, {content.stale + content.repeated} had been queued "
        "before the clock started or came twice.",
        "Use a smaller shuffle buffer (initial_fill) and a short prefetch queue.",
    )


def _unread(measurement: Measurement) -> float:
    """`ln` of what the ratio would gain, were references believed only by what is beyond doubt."""
    rates: dict[Arm, float] = {}  # the fair reference is timed in every second block and counts in the next one, too
    gains = []
    for block in (one for one in measurement.blocks if one.spoiled is None):
        rates |= {window.arm: window.images_per_s for window in block.windows}
        baselines = (
            rate if arm is Arm.LEARNER else _BELIEVED * rate for arm, rate in rates.items() if arm is not Arm.DALI
        )
        gains.append(math.log(rates[Arm.DALI] / max(baselines)) - block.log_ratio)
    return statistics.fmean(gains)


def unseen(measurement: Measurement) -> tuple[str, str] | None:
    """Why a fast rate of the learner's own code is no pass, and what to do; None where the GPU decoded meanwhile.

    Pixels do not say who decoded: a DataLoader that is handed out as a DALI iterator delivers the same ones.
    """
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
    if own >= max(_MOVED_PERCENT if engine else _KERNELS_PERCENT, _TIMES * max(rest)):
        return None
    kernels = "SM unknown" if dali.sm_percent is None else f"SM {dali.sm_percent:.0f} %"
    seen = f"JPEG engine {dali.jpg_percent:.0f} %, {kernels}" if engine else kernels
    return (
        f"While your code was timed the GPU decoded no images ({seen}).",
        "Decode with fn.decoders.image(..., device='mixed') in build_dali_iterator, or build the pipeline from "
        "fn.readers.file and other native operators.",
    )
