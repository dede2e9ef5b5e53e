"""What the text of a torchvision transform says that a loader does; a claim, and read as such."""

import re

from checks.dali_operators import row_of

_STEPS = {
    "random crop": r"RandomResizedCrop|RandomCrop|RandomErasedCrop|RandomIoUCrop",
    "mirror": r"RandomHorizontalFlip|RandomVerticalFlip",
    "colour": r"ColorJitter|RandomGrayscale|RandomAdjustSharpness|RandomPhotometricDistort|RandomAutocontrast",
    "turn": r"RandomRotation|RandomAffine|RandomPerspective",
}
"""Step that both sides can be read for → how a transform names it; of operators their table says it."""
_POLICY = re.compile(r"AutoAugment|RandAugment|TrivialAugmentWide|AugMix")
"""Hides other steps."""
_PLAIN = re.compile(r"Resize|ToTensor|ToImage|Normalize")
"""Steps that tell a transform from other texts; a normalisation may be done in the training loop instead."""


def differences(transform: str, operators: list[str]) -> tuple[list[str], list[str]]:
    """Steps that only the loader does, and steps that only the graph does; both empty where the text is no transform.

    Args:
        transform: as `torchvision.transforms.Compose` prints itself.
        operators: schema names of the graph's operators.
    """
    theirs = [step for step, names in _STEPS.items() if re.search(names, transform)]
    if "(" not in transform or _POLICY.search(transform) or not (theirs or _PLAIN.search(transform)):
        return [], []
    done = {row_of(one).step for one in operators}
    return [step for step in theirs if step not in done], [step for step in _STEPS if step in done - {*theirs}]
