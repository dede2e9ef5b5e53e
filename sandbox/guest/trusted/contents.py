"""Keeps what a window delivered, for the host to judge: mean colours of every image, and whole copies of a few."""

from collections.abc import Iterable
from typing import Any

MAX_COPIES_BYTES = 12 << 20
_GRID = 32
"""Pixels along each side that a mean is taken over; an image's colour code is flat, so few are enough."""


class Look:
    """What is kept of one window.

    Args:
        output: index of the pipeline's output that holds images.
        wanted: (batch, sample) of the images to copy, both counted from 0.
        labels: index of the output that holds the reader's labels, if they should be kept too.
    """

    def __init__(self, output: int, wanted: Iterable[tuple[int, int]], labels: int | None = None) -> None:
        self._output = output
        self._wanted: dict[int, list[int]] = {}
        for batch, sample in wanted:
            self._wanted.setdefault(batch, []).append(sample)
        self._label_output = labels
        self._means: list[Any] = []
        self._copies: list[tuple[int, Any]] = []
        self._labels: list[int] = []
        self._seen = 0
        self._channels_first = False

    def see(self, number: int, outputs: Any) -> None:
        """Looks at one batch; what it needs is copied before the pipeline may use the memory again."""
        import torch

        batch = torch.from_dlpack(outputs[self._output].as_tensor())
        self._channels_first = batch.shape[1] in (1, 3, 4) and batch.shape[-1] not in (1, 3, 4)
        rows, columns = (2, 3) if self._channels_first else (1, 2)
        steps = [max(1, batch.shape[axis] // _GRID) for axis in (rows, columns)]
        thinned = batch[:, :, :: steps[0], :: steps[1]] if self._channels_first else batch[:, :: steps[0], :: steps[1]]
        self._means.append(thinned.mean((rows, columns), dtype=torch.float32))
        for sample in self._wanted.get(number, ()):
            if sample < len(batch):
                self._copies.append((self._seen + sample, batch[sample].clone()))
        if self._label_output is not None:
            self._labels += [int(outputs[self._label_output].at(place)[0]) for place in range(len(batch))]
        self._seen += len(batch)
        if batch.is_cuda:
            # The pipeline fills this memory again on a stream of its own, which does not wait for ours.
            torch.cuda.current_stream().synchronize()

    def message(self) -> tuple[dict[str, Any], bytes]:
        """Body and bytes for the host.

        The bytes are the means, float32 [images, channels], then the copies, uint8 [copies, H, W, C], each stretched
        over the levels from 0 to 255 by itself.
        """
        import torch

        means = torch.cat(self._means).cpu() if self._means else torch.zeros(0, 3)
        means = torch.nan_to_num(means, nan=0.0, posinf=0.0, neginf=0.0)
        copies: list[bytes] = []
        places: list[int] = []
        shape = [0, 0, 0]
        for place, image in self._copies:
            pixels = _as_bytes(image.permute(1, 2, 0) if self._channels_first else image)
            if sum(map(len, copies)) + pixels.nbytes > MAX_COPIES_BYTES:
                break
            shape = list(pixels.shape)
            copies.append(pixels.tobytes())
            places.append(place)
        body = {"images": len(means), "channels": int(means.shape[1]), "places": places, "shape": shape}
        if self._label_output is not None:
            body["labels"] = self._labels
        return body, means.numpy().astype("<f4").tobytes() + b"".join(copies)


def _as_bytes(image: Any) -> Any:
    import torch

    values = torch.nan_to_num(image.float(), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = values.min(), values.max()
    scale = 255.0 / (high - low) if high > low else values.new_zeros(())
    return ((values - low) * scale).round().to(torch.uint8).contiguous().cpu().numpy()
