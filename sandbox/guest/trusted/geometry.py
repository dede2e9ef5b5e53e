"""The windows and sizes of a reference plan as torchvision transforms over Pillow images."""

from typing import Any


def transforms_of(plan: dict[str, Any]) -> list[Any]:
    """Transforms that end with images of `plan["size"]` (height, width); see `graph.view` for the steps."""
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
