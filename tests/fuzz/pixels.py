"""Images that a pod delivered: told apart by their colours, counted, and compared with our own decode."""

import functools
import io
import struct

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from grader_service.held_out.drawing import draw_jpeg
from grader_service.held_out.identity import Identifier
from grader_service.held_out.plan import ShardPlan, marks
from grader_service.measure.delivery import Delivered, _channels_last, _means
from grader_service.measure.proof import Ledger

SIZE = (96, 64)
IMAGES = 96


def means(data: bytes) -> object:
    """Mean colours as a pod may send them, any four bytes being a number."""
    numbers = np.frombuffer(data[: len(data) // 12 * 12], "<f4").reshape(-1, 3)
    with np.errstate(all="ignore"):
        found = Identifier(_plan()).identify_means(numbers)
    assert found.ids.shape == (len(numbers),)
    assert ((found.ids >= -1) & (found.ids < IMAGES)).all()
    return found


def pixels(data: bytes) -> object:
    """Batches: (images, height, width, channels, start) and then bytes; the real shard is mixed into some."""
    ledger = Ledger(_plan(), IMAGES // 2)
    ledger.begin(0)
    place = 0
    for _ in range(2):
        if len(data) < place + 6:
            break
        number, height, width, channels, start, real = struct.unpack_from("6B", data, place)
        place += 6
        shape = (1 + number % 48, 1 + height, 1 + width, 1 + channels % 5)
        body = np.frombuffer(data[place : place + 4096] or b"\0", np.uint8)
        batch = np.resize(body, shape)
        if real:
            batch = _real()[start % IMAGES :][: shape[0]].copy()
            batch[:, : min(height, SIZE[1]), : min(width, SIZE[0])] ^= np.resize(body, 3)
        batch = _channels_last(batch)
        copies = tuple((row, np.ascontiguousarray(batch[row])) for row in range(min(2, len(batch))))
        with np.errstate(all="ignore"):
            tally = ledger.take(Delivered(_means(batch), copies), shown=1)
        assert tally.fresh + tally.stale + tally.repeated + tally.unknown == tally.delivered
    with np.errstate(all="ignore"):
        return ledger.conclude()


@functools.cache
def _plan() -> ShardPlan:
    return ShardPlan("5eed" * 8, (SIZE,) * IMAGES)


@functools.cache
def _real() -> NDArray[np.uint8]:
    plan = _plan()
    colours = marks(plan)
    images = [Image.open(io.BytesIO(draw_jpeg(plan.seed, n, SIZE, colours[n]))) for n in range(IMAGES)]
    return np.stack([np.asarray(image) for image in images])
