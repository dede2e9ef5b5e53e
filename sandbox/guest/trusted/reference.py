"""The reference arm: a plain torchvision DataLoader of ours, with the job that the learner's graph has."""

from collections.abc import Iterator
from typing import Any

from ..channel import Link

_FOREVER = 1 << 40
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def run(link: Link) -> None:
    """Guest program: `prepare` names a loader and its settings, `window` draws from it."""
    import torch
    import torchvision

    link.send("ready", versions={"torch": torch.__version__, "torchvision": torchvision.__version__})
    arms: dict[str, Iterator[int]] = {}
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
            link.send("window_done", images=_draw(arm, request["batches"], device))
        else:
            return


def batches(files: list[str], plan: dict[str, Any], settings: dict[str, Any], device: str) -> Iterator[int]:
    """An endless stream of batch sizes; each batch was delivered to the device when its size is yielded."""
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
            images.to("cuda", non_blocking=True)
            labels.to("cuda", non_blocking=True)
        yield int(images.shape[0])


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

    height, width = plan["size"]
    steps: list[Any] = []
    if plan["geometry"] == "random_resized_crop":
        steps.append(transforms.RandomResizedCrop((height, width)))
    elif plan["geometry"] == "resize_and_crop":
        steps += [transforms.Resize(max(height, width) * 8 // 7), transforms.CenterCrop((height, width))]
    elif plan["geometry"] == "crop":
        steps.append(transforms.CenterCrop((height, width)))
    else:
        steps.append(transforms.Resize((height, width)))
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


def _draw(arm: Iterator[int], count: int, device: str) -> int:
    images = sum(next(arm) for _ in range(count))
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return images
