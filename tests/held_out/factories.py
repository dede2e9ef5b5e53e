"""Held-out images in memory, random crops, and the audit of what a maker delivers."""

import itertools

import numpy as np

from grader_service.held_out import audit, reference
from grader_service.held_out.drawing import draw_jpeg
from grader_service.held_out.plan import ShardPlan, marks
from tests.held_out.forgeries import Source

SEED = "5eed" * 8


def a_shard(size, images):
    """A plan and its files' bytes."""
    plan = ShardPlan(SEED, (size,) * images)
    return plan, [draw_jpeg(SEED, index, size, colour) for index, colour in enumerate(marks(plan))]


def random_crop(rng, size):
    """As RandomResizedCrop draws it: area from 0.08 to 1, aspect from 3:4 to 4:3."""
    while True:
        area = rng.uniform(0.08, 1.0) * size[0] * size[1]
        aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        width, height = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if width <= size[0] and height <= size[1]:
            x, y = int(rng.integers(0, size[0] - width + 1)), int(rng.integers(0, size[1] - height + 1))
            return (x, y, x + width, y + height)


def deliver(maker, files, size, shape=(224, 224), *, crops=False):
    """What the maker makes of every file but the last, half of it mirrored."""
    rng = np.random.default_rng(0)
    for jpeg, other in itertools.pairwise(files):
        box = random_crop(rng, size) if crops else (0, 0, *size)
        pixels = maker(Source(jpeg, other, size), box, shape, rng)
        yield pixels[:, ::-1] if rng.integers(2) else pixels


def audited(delivered, files):
    """The audit of each delivered image against its own file."""
    return [audit.audit_image(pixels, reference.decode(jpeg)) for pixels, jpeg in zip(delivered, files, strict=False)]
