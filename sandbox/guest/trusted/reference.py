"""The reference arm: a plain torchvision DataLoader of ours, with the job that the learner's graph has."""

import atexit
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import delivery
from ..channel import Link
from .children import end_with_parent

_FOREVER = 1 << 40
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def run(link: Link) -> None:
    """Guest program: `prepare` names a loader and its settings, `window` draws from it."""
    import torch
    import torchvision

    link.send("ready", versions={"torch": torch.__version__, "torchvision": torchvision.__version__})
    arms: dict[str, Loader] = {}
    packers: dict[str, delivery.Packer] = {}
    device = "cpu"
    while True:
        request = link.receive()
        if request["kind"] == "prepare":
            device = request["device"]
            arm = arms[request["name"]] = batches(request["files"], request["plan"], request["settings"], device)
            workers = request["settings"]["num_workers"]
            with arm.running():
                _draw(arm, max(1, workers), device)  # one of each worker: none is stopped before it is warm
            link.send("prepared", queue_depth=workers * (request["settings"]["prefetch_factor"] or 0))
        elif request["kind"] == "window" and request["name"] in arms:
            arm = arms[request["name"]]
            with arm.running():
                _draw(arm, request["discard"], device)
                started = time.monotonic()
                link.send("mark")
                images = _draw(arm, request["batches"], device)
                seconds = time.monotonic() - started
            link.send("window_done", images=images, seconds=seconds)
        elif request["kind"] == "deliver" and request["name"] in arms:
            name = request["name"]
            with arms[name].running():
                _draw(arms[name], request["discard"], device)
                link.send("mark")
                packers[name] = delivery.deliver(link, arms[name], request["batches"], packers.get(name))
        else:
            return


class Loader:
    """An endless stream of image batches, `[N, C, H, W]` each; a batch is on the device or on its way when it comes.

    Two loaders share a pod: the workers of one would fill their queues while the other is timed. They run from the
    beginning, and from the first time on that it is over, only within `running`.
    """

    def __init__(self, iterator: Iterator[Any], device: str) -> None:
        """Takes an iterator over (images, labels) of torch's `DataLoader`."""
        self._iterator = iterator
        self._device = device
        self._workers = [worker.pid for worker in getattr(iterator, "_workers", ())]
        atexit.register(self._tell, signal.SIGCONT)  # torch and multiprocessing ask workers to end, and wait for it

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        images, labels = next(self._iterator)
        if self._device == "cuda":
            labels.to("cuda", non_blocking=True)
            return images.to("cuda", non_blocking=True)
        return images

    @contextmanager
    def running(self) -> Iterator[None]:
        """Lets the workers run meanwhile. Torch takes none for dead that is stopped: it asks who has ended."""
        self._tell(signal.SIGCONT)
        try:
            yield
        finally:
            self._tell(signal.SIGSTOP)

    def _tell(self, number: signal.Signals) -> None:
        for worker in self._workers:
            os.kill(worker, number)


def batches(files: list[str], plan: dict[str, Any], settings: dict[str, Any], device: str) -> Loader:
    """The loader for a job, its workers at work."""
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
        worker_init_fn=end_with_parent,
        **options,
    )
    return Loader(iter(loader), device)


class JpegDataset:
    """JPEG files as (image tensor `float32 [C, H, W]` or `uint8`, label) pairs, the way an ImageFolder gives them."""

    def __init__(self, files: list[str], plan: dict[str, Any]) -> None:
        self._files = files
        self._transform = transform(plan)
        self._mode = "L" if plan["channels"] == 1 or plan["grey"] else "RGB"

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        with open(self._files[index], "rb") as file:
            image = Image.open(file)
            image.draft(self._mode, None)  # grey is decoded without the colours
            return self._transform(image.convert(self._mode)), index % 1000


def transform(plan: dict[str, Any]) -> Any:
    """The torchvision transform for a `reference_plan`; of each kind of work it does the least that is called so."""
    from torchvision import transforms

    steps = transforms_of(plan)
    work = {
        "turn": transforms.RandomRotation(15),
        "colour": transforms.ColorJitter(0.2),
        "blur": transforms.GaussianBlur(3),
    }
    steps += [transforms.RandomApply([step], plan[name]) for name, step in work.items() if plan[name]]
    if plan["mirror"]:
        steps.append(transforms.RandomHorizontalFlip())
    if plan["grey"] and plan["channels"] != 1:
        steps.append(transforms.Grayscale(3))
    if plan["floats"]:
        channels = 1 if plan["channels"] == 1 else 3
        steps += [
            transforms.ToTensor(),
            transforms.Normalize(IMAGENET_MEAN[:channels], IMAGENET_STD[:channels]),
        ]
    else:
        steps.append(transforms.PILToTensor())
    return transforms.Compose(steps)


def transforms_of(plan: dict[str, Any]) -> list[Any]:
    """Windows and sizes over Pillow images that end with `plan["size"]` (height, width); for steps see `graph.view`."""
    from torchvision import transforms

    mode = transforms.InterpolationMode(plan["interpolation"])
    size = list(plan["size"])
    made: list[Any] = []
    exact = False
    for step in plan["steps"]:
        exact = False
        if step["op"] == "random_resized_crop":
            made.append(transforms.RandomResizedCrop(size, tuple(step["area"]), tuple(step["ratio"]), mode))
            exact = True
        elif step["op"] == "resize":
            made.append(transforms.Resize(step["size"], mode))
        elif step["op"] == "crop":
            exact = step["size"] == size
            made.append(transforms.CenterCrop(size) if exact else Window(step["size"]))
    if not exact:
        made.append(transforms.Resize(size, mode))
    return made


class Window:
    """Cuts (height, width) pixels out of the middle; more than there is means all of it, so nothing is padded."""

    def __init__(self, size: list[int]) -> None:
        self._size = size

    def __call__(self, image: Any) -> Any:
        """The middle of a Pillow image."""
        height, width = min(self._size[0], image.size[1]), min(self._size[1], image.size[0])
        left, top = (image.size[0] - width) // 2, (image.size[1] - height) // 2
        return image.crop((left, top, left + width, top + height))


def _draw(arm: Iterator[Any], count: int, device: str) -> int:
    images = sum(int(next(arm).shape[0]) for _ in range(count))
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return images
