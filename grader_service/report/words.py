"""What codes of the verdict mean in words: outcomes, statuses, tiers, arms, stages and the decision rule; pure."""

import re
from collections import Counter
from collections.abc import Sequence

from grader_service.model.lab import MeasurementPlan
from grader_service.model.measurement import Arm, Block, LoaderSettings
from grader_service.model.verdict import Status, Tier
from grader_service.report.formats import percent

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

TIER_MEANING = {
    Tier.GRAPH: "your DALI graph ran in our clean room, without any of your code. This is the strongest evidence.",
    Tier.PROOF: "your own code ran, and what it delivered was counted by its content.",
    Tier.COLD_PROOF: "your own code ran from a cold start, and what it delivered was counted by its content. "
    "Start-up is part of the time.",
    Tier.CLAIMS: "nothing could be measured again, so only your own figures are known. They never suffice to pass.",
}

ARM_NAMES = {
    Arm.DALI: "Your DALI graph",
    Arm.LEARNER: "Your DataLoader",
    Arm.DECLARED: "Reference, your settings",
    Arm.FAIR: "Reference, fair settings",
}
ARM_MEANING = {
    Arm.DALI: "the operators of your pipeline, run in our clean room",
    Arm.LEARNER: "your PyTorch loader, in your own pod",
    Arm.DECLARED: "our PyTorch loader with the settings of yours",
    Arm.FAIR: "our PyTorch loader as anyone would configure it here",
}
_ARM_PROSE = {
    Arm.DALI: "your DALI graph",
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
    "scan": "Look through your images",
    "held_out": "Prepare held-out images",
    "clean_room": "Build your graph in the clean room",
    "warm_up": "Warm up the arms",
    "measure": "Time the arms",
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


def rule(plan: MeasurementPlan, threshold: float | None) -> tuple[str, ...]:
    """How blocks become a decision, one sentence or two per step of it."""
    needed = "the threshold" if threshold is None else f"{threshold:g}"
    looks = listed([str(look) for look in plan.looks])
    return (
        f"A block times the arms one after another, for about {plan.block_s:g} s each, on the same held-out images; "
        "our reference at fair settings takes part in every second block. The order turns around from block to block, "
        "so that a drift of the host falls on all arms alike.",
        "A block's ratio is the images per second of your DALI graph over those of the baseline. The baseline is your "
        f"DataLoader, but never less than {percent(plan.declared_floor)} of our reference at your settings, nor less "
        f"than {percent(plan.fair_floor)} of our reference at fair settings: a slow DataLoader does not help.",
        f"The logarithms of the ratios are tested after {looks} blocks (Student's t). The first look that can decide "
        "ends the measurement.",
        f"Passed means that the true ratio lies above {needed}, with a risk of at most {percent(plan.alpha_pass)} of "
        f"being wrong; failed, that it lies below, with a risk of at most {percent(plan.alpha_fail)}. If the last look "
        "shows neither, the outcome is inconclusive, which is not a failure.",
        "All looks share these risks equally, so the bounds of the test are not those of the interval in the plot, "
        "which is only for reading.",
    )


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
