"""Audits some of the images that an arm delivered: each is drawn again, decoded by us and compared."""

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grader_service.held_out.audit import Audit, audit_image
from grader_service.held_out.drawing import draw_jpeg
from grader_service.held_out.plan import ShardPlan, marks
from grader_service.held_out.reference import decode

Image = tuple[int, NDArray[np.uint8]]
"""Place in the plan that an image's colour says, and its pixels [H, W, C]."""
_chance = random.SystemRandom()


def spot_check(plan: ShardPlan, images: Sequence[Image], most: int) -> list[Audit]:
    """The audits of at most `most` of these images, chosen by the system's generator.

    Args:
        plan: what was shown.
        images: kept copies.
        most: how many to look at.
    """
    colours = marks(plan)

    def audit(image: Image) -> Audit:
        index, pixels = image
        return audit_image(pixels, decode(draw_jpeg(plan.seed, index, plan.sizes[index], colours[index])))

    return [audit(image) for image in _chance.sample(images, min(most, len(images)))]
