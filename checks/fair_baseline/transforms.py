"""What the text of a torchvision transform says that a loader does; a claim, and read as such."""

import re

_STEPS: dict[str, re.Pattern[str]] = {
    "random crop": re.compile(r"RandomResizedCrop|RandomCrop|RandomErasedCrop|RandomIoUCrop"),
    "mirror": re.compile(r"RandomHorizontalFlip|RandomVerticalFlip"),
    "colour": re.compile(
        r"ColorJitter|RandomGrayscale|RandomAdjustSharpness|RandomPhotometricDistort|RandomAutocontrast"
    ),
    "policy": re.compile(r"AutoAugment|RandAugment|TrivialAugmentWide|AugMix"),
    "turn": re.compile(r"RandomRotation|RandomAffine|RandomPerspective"),
    "normalise": re.compile(r"Normalize"),
}
_GRAPH_STEPS: dict[str, tuple[str, ...]] = {
    "random crop": ("RandomResizedCrop", "RandomCrop", "ROIRandomCrop"),
    "mirror": ("Flip", "CoinFlip"),
    "colour": ("ColorTwist", "Brightness", "Contrast", "Hsv", "Hue", "Saturation"),
    "turn": ("Rotate", "WarpAffine"),
    "normalise": ("CropMirrorNormalize", "Normalize"),
}
_COMPARED = ("random crop", "mirror", "colour", "turn")
"""Steps that both sides can be read for. A policy hides others, and a normalisation may be done in the "
"training loop."""


def steps_of_text(transform: str) -> frozenset[str]:
    """Steps that the text of a transform names; empty where it says nothing."""
    return frozenset(step for step, pattern in _STEPS.items() if pattern.search(transform))


def steps_of_graph(operators: list[str]) -> frozenset[str]:
    """Steps that operators of a DALI graph do, by their schema names."""
    return frozenset(
        step
        for step, parts in _GRAPH_STEPS.items()
        if any(operator.endswith(parts) or operator.startswith(parts) for operator in operators)
    )


def differences(transform: str, operators: list[str]) -> tuple[list[str], list[str]]:
    """Steps that only the loader does, and steps that only the graph does; both empty where the text is no transform.

    Args:
        transform: as `torchvision.transforms.Compose` prints itself.
        operators: schema names of the graph's operators.
    """
    if "(" not in transform:
        return [], []
    theirs, ours = steps_of_text(transform), steps_of_graph(operators)
    if "policy" in theirs or not theirs | {name for name in ("Resize", "ToTensor", "ToImage") if name in transform}:
        return [], []
    return (
        [step for step in _COMPARED if step in theirs - ours],
        [step for step in _COMPARED if step in ours - theirs],
    )
