"""Results that depend on what the learner's own code delivered (tiers B and C), or on what its graph does (A)."""

import math
import statistics
from collections.abc import Iterable

from checks.api import CheckResult, failed, undecided
from checks.not_carried import not_carried
from grader_service.model.evidence import CleanRoom
from grader_service.model.measurement import Arm, Block, ContentProof, Decision, GraphProof, Measurement
from grader_service.model.verdict import Outcome, Tier

_FACTORY = (
    "Define `build_dali_iterator(dataset_dir, batch_size)` at the top level of your submission: it returns a new DALI "
    "iterator over the JPEGs below `dataset_dir`. With it the grader can run your code on other images."
)
_OTHER_IMAGES = (
    "Check that `build_dali_iterator` reads the folder that it is given, keeps no images from an earlier call, and "
    "opens each file anew in every epoch."
)
_CERTAIN = {
    "replayed": ("replayed", "most of the images that came had come before, so they were not decoded again"),
    "repeated_images": ("replayed", "images came again before the others had come once"),  # in earlier evidence
    "partial_decode": (
        "partial_decode",
        "they lack the finest texture of the files, so they were decoded at reduced resolution",
    ),
    "rendered": (
        "rendered",
        "they have the colours of the files and not their texture, so they were not decoded from them",
    ),
}
"""Problems that leave no doubt: last word of the code, and what was seen."""
_UNCERTAIN = {
    "stale": (
        "stale",
        f"most of them are images that the code had been given earlier. {_OTHER_IMAGES} A shuffle buffer larger than "
        "the folder (initial_fill, 1024 by default) keeps delivering images from before: make it smaller.",
    ),
    "no_images": ("wrong_content", f"no images came. {_OTHER_IMAGES}"),
    "not_identified": ("wrong_content", f"most of them are none of the images in the folder. {_OTHER_IMAGES}"),
    "no_colour": (
        "wrong_content",
        "they have no colour, by which images are recognised. Let `build_dali_iterator` return RGB images.",
    ),
    "colours_changed": (
        "wrong_content",
        "their colours differ from those of the files. Leave colour augmentation out of `build_dali_iterator`, and "
        f"normalise all images alike. {_OTHER_IMAGES}",
    ),
    "small_area": (
        "small_area",
        "they show much less of each file than a standard random crop does, or seldom its lower end, which is less "
        "work. Let `build_dali_iterator` crop as torchvision's RandomResizedCrop does, or resize whole images.",
    ),
}
_UNKNOWN = (
    "wrong_content",
    "their texture could not be compared with the files. Leave out augmentations that blur or mix images, and deliver "
    "images of 96 pixels or more.",
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
        "So a higher rate would not mean that DALI is faster. Decode whole images (fn.decoders.image) and crop "
        "afterwards, or use fn.decoders.image_random_crop with random_area=[0.08, 1.0].",
    ),
    "not_examined": (
        "ratio.not_examined",
        "So it cannot be told what your graph does, and nothing is held against it. Leave out of the benchmark what is "
        "named here, or let a person look at it.",
    ),
}
"""Its other problems: the code, and what to change."""


def not_run(room: CleanRoom, measurement: Measurement | None) -> CheckResult | None:
    """The result when neither the graph nor the learner's own code could be timed; None when something was."""
    if measurement is None:
        return not_carried("ratio", room)
    if measurement.blocks:
        return None
    if measurement.content is not None and measurement.content.problem is not None:
        return _doubtful(measurement, measurement.content)
    base = not_carried("ratio", room)
    if base.outcome is not Outcome.UNVERIFIED:
        return base
    return undecided(
        Outcome.UNVERIFIED,
        base.code,
        f"{base.feedback} {_why(measurement)}",
        tier=Tier.CLAIMS,
        details={**base.details, "tried": [entry.model_dump(mode="json") for entry in measurement.refused]},
    )


def not_delivered(measurement: Measurement) -> CheckResult | None:
    """The result when images were timed that do not count as delivered; None when they count."""
    if measurement.graph is not None and measurement.graph.problem is not None:
        return _of_graph(measurement.graph)
    content = measurement.content
    if content is None or content.problem is None:
        return None
    return _of_earlier_graph(content) if measurement.tier == "A" else _doubtful(measurement, content)


def _of_graph(proof: GraphProof) -> CheckResult:
    """What was seen in the clean room, where no code of the learner could be misunderstood."""
    problem = proof.problem or ""
    details = {"graph": proof.model_dump(mode="json")}
    seen = f"The grader ran your DALI graph on other pictures before timing it. {proof.note}"
    if problem in _NOT_FROM_FILES:
        text = f"{seen} Let one output of the pipeline be the decoded images of the files that fn.readers.file reads."
        return failed(_NOT_FROM_FILES[problem], text, tier=Tier.GRAPH, details=details)
    code, advice = _IN_DOUBT[problem]
    return undecided(Outcome.INCONCLUSIVE, code, f"{seen} {advice}", tier=Tier.GRAPH, details=details)


def _of_earlier_graph(content: ContentProof) -> CheckResult:
    """Evidence from when graphs were judged by the pixels that they delivered; nobody fails by that any more."""
    return undecided(
        Outcome.INCONCLUSIVE,
        "ratio.not_examined",
        "An earlier version of the grader doubted the images of your DALI graph by their pixels alone. Submit again: "
        "graphs are tried out on other pictures now.",
        tier=Tier.GRAPH,
        details={"content": content.model_dump(mode="json")},
    )


def softened(measurement: Measurement, decision: Decision) -> str | None:
    """Why a ratio that is too low is no failure: what was charged beside the work could have made the difference."""
    if measurement.tier == "C":
        return (
            "Your code keeps the files of its folder in memory, so it was built anew for every window, and building "
            "counted. Without that the ratio might be high enough, so this is not counted as a failure. Let "
            "`build_dali_iterator` open each file when its image is due, or read them with fn.readers.file."
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
            "Your DataLoader was slower than ours, so ours was the baseline, and it only decodes and resizes. Your "
            "DALI code may do more to each image, which nobody can read from outside, so this is not counted as a "
            "failure. Use as many workers in your DataLoader as there are cores: then your own is the baseline."
        )
    return (
        f"Of {content.delivered} images that your code delivered, {content.stale + content.repeated} could not be "
        "counted, because they had been queued before the clock started or came twice. With them the ratio might be "
        "high enough, so this is not counted as a failure. A smaller shuffle buffer (initial_fill) and a short "
        "prefetch queue leave fewer of them."
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


def note(measurement: Measurement) -> str:
    """One sentence on how strong the evidence is; empty for a graph in the clean room."""
    if measurement.tier == "A":
        return ""
    how = "built anew for every window" if measurement.tier == "C" else "with new images put under it while it ran"
    return (
        f"Tier {measurement.tier}: your graph could not be carried, so `build_dali_iterator` itself was timed, {how}, "
        "and only images that it could not have known before were counted."
    )


def _doubtful(measurement: Measurement, content: ContentProof) -> CheckResult:
    problem = content.problem or ""
    details = {"content": content.model_dump(mode="json")}
    seen = f"The grader looked at {content.delivered} images that `build_dali_iterator` delivered:"
    tier = Tier(measurement.tier)
    if problem in _CERTAIN:
        last, why = _CERTAIN[problem]
        return failed(f"ratio.{last}", f"{seen} {why}. {_OTHER_IMAGES}", tier=tier, details=details)
    code, text = _UNCERTAIN.get(problem, _UNKNOWN)
    return undecided(Outcome.UNVERIFIED, f"ratio.{code}", f"{seen} {text}", tier=Tier.CLAIMS, details=details)


def _why(measurement: Measurement) -> str:
    """What was tried beside the graph, and what to change."""
    later = [entry for entry in measurement.refused if entry.tier != "A"]
    if any(entry.problem == "no_factory" for entry in later):
        return f"Or keep it as it is: {_FACTORY[0].lower()}{_FACTORY[1:]}"
    if any(entry.problem == "needs_gpu" for entry in later):
        return (
            f"Your own code was tried instead, and it needs a GPU: {later[0].text[:600]} Grade it on a host with a GPU."
        )
    texts = list(dict.fromkeys(entry.text for entry in later))
    return " ".join(["Your own code was tried instead.", *texts, _OTHER_IMAGES])[:4000]
