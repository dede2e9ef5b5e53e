"""Held-out files for experiments with a graph: JPEGs, and pictures in memory that a decoder reads without loss."""

import os
import random
from collections.abc import Sequence
from typing import Any, Self

from ..graph.model import Operator
from ..graph.operators import IMAGE_DECODER

_AT_ONCE, _MOST_BYTES = 16, 64 << 20
"""Files that are decoded together, and bytes of pictures from which no more are."""
_LOWEST = 1 / 3
"""Part of a picture that only a decoder sees which reads a file nearly to its end."""


class Pictures:
    """What decoders make of whole files, as files in memory; use as a context manager.

    Args:
        files: JPEG files, the most important first: only as many as `_MOST_BYTES` of pixels hold, and some more.
        grey: pictures have one channel, of which a file's header tells.
    """

    def __init__(self, files: Sequence[str], decoder: Operator, threads: int, *, grey: bool) -> None:
        self.pixels = _decoded(files, decoder, threads, grey=grey)
        self.files = list(files[: len(self.pixels)])
        self.twins = [_kept(pixels) for pixels in self.pixels]
        self._made = list(self.twins)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._made:
            os.close(descriptor)

    def shuffle(self, draw: random.Random) -> None:
        """Puts the files in an order that no graph can know."""
        order = draw.sample(range(len(self.files)), len(self.files))
        self.files = [self.files[place] for place in order]
        self.pixels = [self.pixels[place] for place in order]
        self.twins = [self.twins[place] for place in order]

    def others(self, draw: random.Random) -> list[int]:
        """For each file one of the same size that shows another picture: of another file, shifted, in its negative."""
        import numpy as np

        turned = draw.sample(range(len(self.pixels)), len(self.pixels))
        found = []
        for pixels, place in zip(self.pixels, turned, strict=True):
            height, width, _ = pixels.shape
            other = self.pixels[place]
            repeats = (-(-height // other.shape[0]), -(-width // other.shape[1]), 1)
            shifts = (draw.randrange(height), draw.randrange(width))
            moved = np.roll(np.tile(other, repeats)[:height, :width], shifts, axis=(0, 1))
            found.append(_kept(255 - moved))
        self._made += found
        return found

    def changed_below(self) -> list[int]:
        """For each file one whose lowest third shows its negative."""
        found = []
        for pixels in self.pixels:
            changed = pixels.copy()
            lowest = changed[round(len(changed) * (1 - _LOWEST)) :]
            lowest[:] = 255 - lowest
            found.append(_kept(changed))
        self._made += found
        return found


def decode_one() -> None:
    """Has DALI load what its decoders need, which takes a tenth of a second of the first decode of a process."""
    import numpy as np

    picture = _kept(np.zeros((8, 8, 3), np.uint8))
    _decoded([path_of(picture)], Operator(IMAGE_DECODER), 1, grey=False)
    os.close(picture)


def path_of(descriptor: int) -> str:
    """Where the processes of this pod find a file in memory."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _decoded(files: Sequence[str], decoder: Operator, threads: int, *, grey: bool) -> list[Any]:
    from nvidia.dali import Pipeline, fn, types

    options = {
        "output_type": types.GRAY if grey else types.RGB,
        "adjust_orientation": decoder.scalar("adjust_orientation") in (None, True),
    }
    found: list[Any] = []
    pipe = Pipeline(batch_size=min(len(files), _AT_ONCE), num_threads=threads, device_id=None, prefetch_queue_depth=1)
    with pipe:
        encoded, _ = fn.readers.file(files=list(files), pad_last_batch=True)
        pipe.set_outputs(fn.decoders.image(encoded, device="cpu", **options))
    pipe.build()
    while len(found) < len(files) and sum(pixels.nbytes for pixels in found) < _MOST_BYTES:
        (batch,) = pipe.run()
        found += [batch.at(place).copy() for place in range(min(len(batch), len(files) - len(found)))]
    return found


def _kept(pixels: Any) -> int:
    """Descriptor of a PPM or PGM file in memory."""
    descriptor = os.memfd_create("picture", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(
            f"P{6 if pixels.shape[2] == 3 else 5} {pixels.shape[1]} {pixels.shape[0]} 255\n".encode() + pixels.tobytes()
        )
    return descriptor
