"""Sends batches to the host as pixels, so that the host counts what arrived and when; the same for every arm.

The host copies the pixels before it looks at them. Values are sent as bytes on one scale for the whole run, taken from
the arm's first batch: an image is recognised through any such scale, and a float would cost four times the transfer.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .channel import Link

_MOST_BYTES = 8 << 20
"""Of pixels in one message; the host takes 16 MiB."""
_DEPTH = 4
_MARGIN = 0.05


class NoImages(Exception):
    """A batch holds no images that could be sent; the message is for the learner."""


class Packer:
    """Turns batches of one arm into bytes."""

    def __init__(self, first: Any) -> None:
        """Takes the scale from the first batch, as `find_images` gives it."""
        self.dtype = str(first.dtype).rpartition(".")[2]
        self.shape = [int(side) for side in first.shape]
        self._low, self._step = 0.0, 1.0
        if self.dtype != "uint8":
            values = first.float()
            low, high = float(values.min()), float(values.max())
            if not (low - low == 0.0 and high - high == 0.0):
                raise NoImages("the first batch holds NaN or infinite values")
            margin = _MARGIN * (high - low) or 1.0
            self._low, self._step = low - margin, (high - low + 2 * margin) / 255.0

    def pack(self, images: Any) -> Any:
        """uint8 array of the same shape, contiguous, in the memory of this process.

        Raises:
            NoImages: its values are of another type than those of the first batch.
        """
        if str(images.dtype).rpartition(".")[2] != self.dtype:
            raise NoImages(f"the first batch holds {self.dtype} values, a later one {images.dtype}")
        if self.dtype != "uint8":
            images = ((images.float() - self._low) / self._step).round_().clamp_(0, 255)
        return images.to(sys.modules["torch"].uint8).contiguous().cpu().numpy()


def deliver(link: Link, batches: Iterator[Any], count: int, packer: Packer | None = None) -> Packer:
    """Sends `count` batches in messages `images`, then `delivered`; returns the packer for the next time.

    Raises:
        NoImages: a batch holds no images.
    """
    for _ in range(count):
        images = find_images(next(batches))
        packer = packer or Packer(images)
        pixels = packer.pack(images)
        rows = max(1, _MOST_BYTES // max(1, pixels[0].nbytes))
        for start in range(0, len(pixels), rows):
            part = pixels[start : start + rows]
            link.send("images", part.tobytes(), shape=list(part.shape))
    link.send("delivered")
    if packer is None:
        raise NoImages("no batch was asked for")
    return packer


def find_images(batch: Any) -> Any:
    """The images in a batch as one torch tensor of four dimensions, wherever it lies.

    Looks into dicts, lists and tuples, and takes torch, numpy, DALI lists and batches and anything with DLPack.

    Raises:
        NoImages: there is none; the message says what was found.
    """
    found = _search(batch, _DEPTH)
    if found is None:
        raise NoImages(f"a batch is a {type(batch).__name__} in which no tensor has four dimensions")
    if not found.shape[0]:
        raise NoImages("a batch is empty")
    return found


def _search(value: Any, depth: int) -> Any:
    tensor = _as_torch(value)
    if tensor is not None:
        return tensor if tensor.dim() == 4 else None
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    else:
        return None
    for part in parts[:4096]:
        found = _search(part, depth - 1)
        if found is not None:
            return found
    return _stacked(parts)


def _stacked(parts: list[Any]) -> Any:
    """A list of single images as one batch."""
    tensors = [_as_torch(part) for part in parts]
    images = [tensor for tensor in tensors if tensor is not None and tensor.dim() == 3]
    if len(images) < 2 or len(images) != len(parts) or len({tuple(image.shape) for image in images}) != 1:
        return None
    return sys.modules["torch"].stack(images)


def _as_torch(value: Any) -> Any:
    """The value as a torch tensor if it is one kind of array or another; None if it is none."""
    import torch

    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, type):
        return None
    # DALI's list of samples and its dynamic mode's batch hold one tensor each when all samples have one shape.
    name = type(value).__name__
    if name in ("TensorListCPU", "TensorListGPU"):
        value = value.as_tensor()
    elif name == "Batch" and type(value).__module__.startswith("nvidia.dali"):
        value = sys.modules["nvidia.dali.experimental.dynamic"].as_tensor(value)
    if name == "PyCapsule" or hasattr(value, "__dlpack__"):
        return torch.from_dlpack(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return torch.from_numpy(value)
    return None
