"""The reference arm: a plain torchvision DataLoader of ours, with the job that the learner's graph has."""

import time
from collections.abc import Iterator
from typing import Any

from .. import delivery
from ..channel import Link
from . import geometry

_FOREVER = 1 << 40
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def run(link: Link) -> None:
    """Guest program: `prepare` names a loader and its settings, `window` draws from it."""
    import torch
    import torchvision

    link.send("ready", versions={"torch": torch.__version__, "torchvision": torchvision.__version__})
    arms: dict[str, Iterator[Any]] = {}
    packers: dict[str, delivery.Packer] = {}
    device = "cpu"
    while True:
        request = link.receive()
        if request["kind"] == "prepare":
            device = request["device"]
            arms[request["name"]] = batches(request["files"], request["plan"], request["settings"], device)
            next(arms[request["name"]])
            workers = request["settings"]["num_workers"]
            link.send("prepared", queue_depth=workers * (request["settings"]["prefetch_factor"] or 0))
        elif request["kind"] == "window" and request["name"] in arms:
            arm = arms[request["name"]]
            _draw(arm, request["discard"], device)
            link.send("mark")
            started = time.monotonic()
            images = _draw(arm, request["batches"], device)
            link.send("window_done", images=images, seconds=time.monotonic() - started)
        elif request["kind"] == "deliver" and request["name"] in arms:
            name = request["name"]
            _draw(arms[name], request["discard"], device)
            link.send("mark")
            packers[name] = delivery.deliver(link, arms[name], request["batches"], packers.get(name))
        else:
            return


def batches(files: list[str], plan: dict[str, Any], settings: dict[str, Any], device: str) -> Iterator[Any]:
    """An endless stream of image batches, `[N, C, H, W]` each; a batch is on the device or on its way when it comes."""
    from torch.utils.data import DataLoader, RandomSampler

    dataset = JpegDataset(files, plan)
    workers = settings["num_workers"]
    options: dict[str, Any] = {}
    if workers:
        options = {"persistent_workers": True, "prefetch_factor": settings["prefetch_factor"] or 2}
    loader = DataLoader(
        dataset,
        batch_size=settings["batch_size"],
        sampler=RandomSampler(dataset, replacement=True, num_samples=_FOREVER),
        num_workers=workers,
        pin_memory=device == "cuda" and settings["pin_memory"],
        **options,
    )
    for images, labels in loader:
        if device == "cuda":
            labels.to("cuda", non_blocking=True)
            yield images.to("cuda", non_blocking=True)
        else:
            yield images


class JpegDataset:
    """JPEG files as (image tensor `float32 [C, H, W]` or `uint8`, label) pairs, the way an ImageFolder gives them."""

    def __init__(self, files: list[str], plan: dict[str, Any]) -> None:
        self._files = files
        self._transform = transform(plan)
        self._mode = "L" if plan["channels"] == 1 else "RGB"

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        with open(self._files[index], "rb") as file:
            return self._transform(Image.open(file).convert(self._mode)), index % 1000


def transform(plan: dict[str, Any]) -> Any:
    """The torchvision transform for a `reference_plan`."""
    from torchvision import transforms

    steps = geometry.transforms_of(plan)
    if plan["turn"]:
        steps.append(transforms.RandomRotation(15))
    if plan["colour"]:
        steps.append(transforms.ColorJitter(0.2, 0.2, 0.2, 0.05))
    if plan["blur"]:
        steps.append(transforms.GaussianBlur(3))
    if plan["mirror"]:
        steps.append(transforms.RandomHorizontalFlip())
    if plan["floats"]:
        channels = 1 if plan["channels"] == 1 else 3
        steps += [
            transforms.ToTensor(),
            transforms.Normalize(IMAGENET_MEAN[:channels], IMAGENET_STD[:channels]),
        ]
    else:
        steps.append(transforms.PILToTensor())
    return transforms.Compose(steps)


def _draw(arm: Iterator[Any], count: int, device: str) -> int:
    images = sum(int(next(arm).shape[0]) for _ in range(count))
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return images
