"""Results that depend on what the learner's own code delivered (tiers B and C), or on what its graph does (A)."""

import math
import statistics
from collections.abc import Iterable

from checks.api import Result, failed, undecided
from checks.not_carried import FACTORY_CALL, NEEDS_GPU, OTHER_IMAGES, first_words, not_carried
from checks.stopped import RunEnd
from checks.throughput_ratio.wording import NOTHING_COUNTED
from grader_service.model.evidence import CleanRoom
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.measurement import Arm, Block, ContentProof, Decision, GraphProof, Measurement
from grader_service.model.verdict import Outcome, Tier

_FACTORY = (
    f"Another way is to define `{FACTORY_CALL}`, which returns a new DALI iterator over the JPEGs below that "
    "folder: the grader can call it."
)
_CERTAIN = {
    "replayed": ("replayed", "Most of the images that came had come before, so they were not decoded again."),
    "repeated_images": ("replayed", "Images came again before the others had come once."),  # in earlier evidence
    "partial_decode": (
        "partial_decode",
        "They lack the finest texture of the files, so they were decoded at reduced resolution.",
    ),
    "rendered": (
        "rendered",
        "They have the colours of the files and not their texture, so they were not decoded from them.",
    ),
}
"""Problems that leave no doubt: last word of the code, and what was seen."""
_UNCERTAIN = {
    "stale": (
        "stale",
        "Most of them are images that the code had been given earlier.",
        "Make the shuffle buffer (initial_fill, 1024 by default) smaller than the folder, and open each file anew in "
        "every epoch.",
    ),
    "no_images": ("wrong_content", "No images came.", OTHER_IMAGES),
    "not_identified": ("wrong_content", "Most of them are none of the images in the folder.", OTHER_IMAGES),
    "no_colour": (
        "wrong_content",
        "They have no colour, by which images are recognised.",
        "Let `build_dali_iterator` return RGB images.",
    ),
    "colours_changed": (
        "wrong_content",
        "Their colours differ from those of the files.",
        "Leave colour augmentation out of `build_dali_iterator`, and normalise all images alike.",
    ),
    "small_area": (
        "small_area",
        "They show much less of each file than a standard random crop, or seldom its lower end: that is less work.",
        "Let `build_dali_iterator` crop as torchvision's RandomResizedCrop does, or resize whole images.",
    ),
}
"""Other problems: last word of the code, what was seen, and what to do."""
_UNKNOWN = (
    "wrong_content",
    "Their texture could not be compared with the files.",
    "Leave out augmentations that blur or mix images, and deliver images of 96 pixels or more.",
)


_BELIEVED = 0.7
"""Share of a reference's rate that counts when a ratio is to fail, where the learner's own code was timed: it may do
more to an image than our references, which nobody can read. To pass, the floors of the plan count."""
_NOT_FROM_FILES = {"independent": "ratio.independent", "unlike": "ratio.unlike"}
"""Problems of a graph that leave no doubt (see `grader_service/grading/acceptance.py`): the code."""
_IN_DOUBT = {
    "unclear": (
        "ratio.unclear",
        "Leave out of the benchmark what replaces whole images, or let a person look at it.",
    ),
    "lesser": (
        "ratio.small_area",
        "Decode whole images (fn.decoders.image) and crop afterwards, or use fn.decoders.image_random_crop with "
        "random_area=[0.08, 1.0]: a higher rate would not mean that DALI is faster.",
    ),
    "not_examined": (
        "ratio.not_examined",
        "Leave out of the benchmark what is named here, or let a person look at it: nothing is held against you.",
    ),
}
"""Its other problems: the code, and what to change."""
_GRAPH_LOOKED_AT = "The grader ran your DALI graph on other pictures before timing it"


def not_run(room: CleanRoom, measurement: Measurement | None, run: RunEnd) -> Result | None:
    """The result when neither the graph nor the learner's own code could be timed; None when something was.

    Args:
        room: where the graph did not run.
        measurement: what was tried; None where that was nothing.
        run: how the learner's code ended: another way is shown to who got to the end of this one.
    """
    if measurement is None:
        return not_carried("ratio", room)
    if measurement.blocks:
        return None
    if measurement.content is not None and measurement.content.problem is not None:
        return _doubtful(measurement, measurement.content)
    base = not_carried("ratio", room)
    if base.outcome is not Outcome.UNVERIFIED:
        return base
    details = {**base.details, "tried": [entry.model_dump(mode="json") for entry in measurement.refused]}
    return undecided(
        Outcome.UNVERIFIED, base.code, _tried(base.parts, room, measurement, run), tier=Tier.CLAIMS, details=details
    )


def not_delivered(measurement: Measurement) -> Result | None:
    """The result when images were timed that do not count as delivered; None when they count."""
    if measurement.graph is not None and measurement.graph.problem is not None:
        return _of_graph(measurement.graph)
    content = measurement.content
    if content is None or content.problem is None:
        return None
    return _of_earlier_graph(content) if measurement.tier == "A" else _doubtful(measurement, content)


def _of_graph(proof: GraphProof) -> Result:
    """What was seen in the clean room, where no code of the learner could be misunderstood."""
    problem = proof.problem or ""
    details = {"graph": proof.model_dump(mode="json")}
    seen = first_words(proof.note)
    if problem in _NOT_FROM_FILES:
        feedback = Feedback(
            outcome=f"{_GRAPH_LOOKED_AT}: its images are not made of the files.",
            seen=seen,
            next=NextStep(text="Return the decoded images of the files that fn.readers.file reads."),
        )
        return failed(_NOT_FROM_FILES[problem], feedback, tier=Tier.GRAPH, details=details)
    code, action = _IN_DOUBT[problem]
    feedback = Feedback(
        outcome=f"{_GRAPH_LOOKED_AT}, and cannot tell what it does.", seen=seen, next=NextStep(text=action)
    )
    return undecided(Outcome.INCONCLUSIVE, code, feedback, tier=Tier.GRAPH, details=details)


def _of_earlier_graph(content: ContentProof) -> Result:
    """Evidence from when graphs were judged by the pixels that they delivered; nobody fails by that any more."""
    return undecided(
        Outcome.INCONCLUSIVE,
        "ratio.not_examined",
        Feedback(
            outcome="An earlier version of the grader doubted the images of your DALI graph by their pixels alone.",
            next=NextStep(text="Hand it in again: graphs are tried out on other pictures now."),
        ),
        tier=Tier.GRAPH,
        details={"content": content.model_dump(mode="json")},
    )


def softened(measurement: Measurement, decision: Decision) -> Feedback | None:
    """Why a ratio that is too low is no failure: what was charged beside the work could have made the difference."""
    found = _softened(measurement, decision)
    if found is None:
        return None
    seen, action = found
    return Feedback(
        outcome="The ratio is too low, but what was counted beside the work could have made the difference, so "
        f"{NOTHING_COUNTED}.",
        seen=seen,
        next=NextStep(text=action),
        numbers={"ratio": decision.ratio, "needed": decision.threshold},
    )


def _softened(measurement: Measurement, decision: Decision) -> tuple[str, str] | None:
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
    unread = _unread(block for block in measurement.blocks if block.spoiled is None)
    if highest + uncounted + unread <= needed:
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


def _unread(blocks: Iterable[Block]) -> float:
    """`ln` of what the ratio would gain, were references believed only by what is beyond doubt."""
    rates: dict[Arm, float] = {}  # the fair reference is timed in every second block and counts in the next one, too
    gains = []
    for block in blocks:
        rates |= {window.arm: window.images_per_s for window in block.windows}
        baselines = [
            rate if arm is Arm.LEARNER else _BELIEVED * rate for arm, rate in rates.items() if arm is not Arm.DALI
        ]
        gains.append(math.log(rates[Arm.DALI] / max(baselines)) - block.log_ratio)
    return statistics.fmean(gains)


def _doubtful(measurement: Measurement, content: ContentProof) -> Result:
    problem = content.problem or ""
    details = {"content": content.model_dump(mode="json")}
    looked = f"The grader looked at {content.delivered} images that `build_dali_iterator` delivered"
    if problem in _CERTAIN:
        word, seen = _CERTAIN[problem]
        feedback = Feedback(outcome=f"{looked}, and they do not count.", seen=seen, next=NextStep(text=OTHER_IMAGES))
        return failed(f"ratio.{word}", feedback, tier=Tier(measurement.tier), details=details)
    last, seen, action = _UNCERTAIN.get(problem, _UNKNOWN)
    feedback = Feedback(outcome=f"{looked}, and cannot tell what they are.", seen=seen, next=NextStep(text=action))
    return undecided(Outcome.UNVERIFIED, f"ratio.{last}", feedback, tier=Tier.CLAIMS, details=details)


def _tried(base: Feedback, room: CleanRoom, measurement: Measurement, run: RunEnd) -> Feedback:
    """What was tried beside the graph, and what to change."""
    if room.factory_problem:
        return base
    later = [entry for entry in measurement.refused if entry.tier != "A"]
    if any(entry.problem == "no_factory" for entry in later):
        if run != "completed":
            return base
        other = Advice(code="advice.no_factory", severity=Severity.NOTE, text="", next=_FACTORY)
        return base.model_copy(update={"advice": (*base.advice, other)})
    if any(entry.problem == "needs_gpu" for entry in later):
        seen = f"Your own code was tried instead, and it needs a GPU: {first_words(later[0].text)}"
        return base.model_copy(update={"seen": seen, "next": NextStep(text=NEEDS_GPU)})
    texts = " ".join(dict.fromkeys(entry.text for entry in later))
    seen = f"Your own code was tried instead. {first_words(texts)}"
    return base.model_copy(update={"seen": seen, "next": NextStep(text=OTHER_IMAGES)})
