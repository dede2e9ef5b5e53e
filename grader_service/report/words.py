"""What codes of the verdict mean in words: outcomes, statuses, tiers, arms and stages; pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from grader_service.model.measurement import Arm, Block, LoaderSettings
from grader_service.model.verdict import Status, Tier

MARKS = {
    "passed": "✓",
    "failed": "✕",
    "inconclusive": "≈",
    "unverified": "?",
    "skipped": "–",
    "rejected": "✕",
    "error": "!",
}
"""One sign per outcome and status, so that colour is never the only difference."""

STATUS_MEANING = {
    Status.PASSED: "Every step passed.",
    Status.FAILED: "At least one step did not pass.",
    Status.INCONCLUSIVE: "Measured, but noise or the host does not allow a decision. This is not a failure.",
    Status.UNVERIFIED: "Something could not be measured again. The feedback says what to change.",
    Status.REJECTED: "The submission itself could not be used.",
    Status.ERROR: "The grader failed. This is our fault and costs no attempt.",
}

STOPPED_AND_PASSED = "Every step passed all the same, so this cost no points."
"""Beside a run that did not come to its end, and that no step needed to."""

TIER_MEANING = {
    Tier.GRAPH: "your DALI graph ran in our clean room, without any of your code. This is the strongest evidence.",
    Tier.PROOF: "your own code ran, and what it delivered was counted by its content.",
    Tier.COLD_PROOF: "your own code ran from a cold start, and what it delivered was counted by its content. "
    "Start-up is part of the time.",
    Tier.CLAIMS: "this is what your own code says of itself. Nothing of it could be measured again.",
}

MeasuredTier = Literal["A", "B", "C"]
"""A tier in which something was timed."""

_REFERENCE_NAMES = {
    Arm.LEARNER: "Your DataLoader",
    Arm.DECLARED: "Reference, your settings",
    Arm.FAIR: "Reference, fair settings",
}
_GRAPH_NAMES = {Arm.DALI: "Your DALI graph", **_REFERENCE_NAMES}
_CODE_NAMES = {Arm.DALI: "Your DALI code", **_REFERENCE_NAMES}
_REFERENCE_MEANING = {
    Arm.DECLARED: "our PyTorch loader with the settings of yours",
    Arm.FAIR: "our PyTorch loader as anyone would configure it here",
}
_GRAPH_MEANING = {
    Arm.DALI: "the operators of your pipeline, run in our clean room",
    Arm.LEARNER: "your PyTorch loader, in your own pod",
    **_REFERENCE_MEANING,
}
_CODE_MEANING = {
    Arm.DALI: "your own `build_dali_iterator`, in your own pod",
    Arm.LEARNER: "your PyTorch loader, in your own pod, timed once before the blocks",
    **_REFERENCE_MEANING,
}
_ARM_PROSE = {
    Arm.LEARNER: "your DataLoader",
    Arm.DECLARED: "our reference at your settings",
    Arm.FAIR: "our reference at fair settings",
}
ARM_SIGNS = {Arm.DALI: "●", Arm.LEARNER: "■", Arm.DECLARED: "▲", Arm.FAIR: "◆"}
"""The markers of the plot, as text."""

_STAGES = {
    "unpack": "Unpack the submission",
    "start": "Start the pod",
    "learner": "Run your code",
    "probes": "Look at what your code left behind",
    "scan": "Look through your images",
    "held_out": "Prepare held-out images",
    "clean_room": "Build your graph in the clean room",
    "experiments": "Run the graph on other pictures",
    "warm_up": "Warm up the arms",
    "measure": "Time the arms",
    "host": "Measure what this host can show",
    "content": "Fetch what was delivered",
    "compare": "Compare it with the images",
    "proof": "Measure your own DALI code by what it delivers",
    "graph_probes": "Run your graphs on the grader's images",
    "end": "Clean up",
}
_SPELLING = {
    "cpu": "CPU",
    "cpus": "CPUs",
    "cuda": "CUDA",
    "dali": "DALI",
    "dataloader": "DataLoader",
    "gpu": "GPU",
    "id": "ID",
    "jpeg": "JPEG",
    "mib": "MiB",
    "python": "Python",
    "pytorch": "PyTorch",
    "torch": "torch",
    "torchvision": "torchvision",
    "uuid": "UUID",
}


def title(identifier: str) -> str:
    """A name such as `jpeg_dataset` as a heading: `JPEG dataset`."""
    words = [_SPELLING.get(word.lower(), word) for word in re.split(r"[_\-\s]+", identifier) if word]
    if not words:
        return identifier
    first = words[0]
    if first.lower() not in _SPELLING:
        words[0] = first[:1].upper() + first[1:]
    return " ".join(words)


def stage(name: str) -> str:
    """What happens in a stage of the run."""
    return _STAGES.get(name, title(name))


def arm_names(tier: MeasuredTier) -> Mapping[Arm, str]:
    """A short name of each arm; below tier A the DALI arm is the learner's own code."""
    return _GRAPH_NAMES if tier == "A" else _CODE_NAMES


def arm_meaning(tier: MeasuredTier) -> Mapping[Arm, str]:
    """What ran as each arm, and where; code stands between backticks."""
    return _GRAPH_MEANING if tier == "A" else _CODE_MEANING


def loader(settings: LoaderSettings | None) -> str:
    """A DataLoader's settings in one line."""
    if settings is None:
        return ""
    workers = "1 worker" if settings.num_workers == 1 else f"{settings.num_workers} workers"
    parts = [f"batch {settings.batch_size}", workers]
    if settings.prefetch_factor is not None:
        parts.append(f"prefetch {settings.prefetch_factor}")
    parts.append("pinned memory" if settings.pin_memory else "memory not pinned")
    if settings.persistent_workers:
        parts.append("persistent workers")
    return ", ".join(parts)


def baselines(blocks: Sequence[Block]) -> str:
    """Which arm the ratio was taken against, and in how many blocks."""
    counts = Counter(block.baseline for block in blocks if block.spoiled is None)
    if not counts:
        return ""
    if len(counts) == 1:
        return f"The baseline of every block was {_ARM_PROSE[next(iter(counts))]}."
    parts = [f"{_ARM_PROSE[arm]} in {count}" for arm, count in counts.most_common()]
    return f"Of {counts.total()} blocks the baseline was {listed(parts)}."


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
