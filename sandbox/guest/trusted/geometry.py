"""The windows and sizes of a reference plan as torchvision transforms over Pillow images."""

from typing import Any

_FULL = 0
"""A length that a step leaves as it comes."""


def transforms_of(plan: dict[str, Any]) -> list[Any]:
    """Transforms that end with images of `plan["size"]` (height, width); see `graph.view` for the steps."""
    from torchvision import transforms

    mode = transforms.InterpolationMode(plan["interpolation"])
    size = tuple(plan["size"])
    made: list[Any] = []
    exact = False
    for step in plan["steps"]:
        exact = False
        if step["op"] == "random_resized_crop":
            made.append(transforms.RandomResizedCrop(size, tuple(step["area"]), tuple(step["ratio"]), mode))
            exact = True
        elif step["op"] == "resize":
            made.append(Fit(step["mode"], step["size"], mode))
        elif step["op"] == "crop":
            made.append(Window(step["size"]))
            exact = tuple(step["size"]) == size
        elif step["op"] == "slice":
            made.append(Share(step["share"]))
        elif step["op"] == "pad":
            made += [Fit("stretch", step["inner"], mode), transforms.CenterCrop(tuple(step["size"]))]
            exact = tuple(step["size"]) == size
    if not exact:
        made.append(Fit("stretch", plan["size"], mode))
    return made


class Fit:
    """Resizes to a size, or by it without changing the shape of the image.

    Args:
        mode: `stretch`, `not_larger` (fits inside) or `not_smaller` (covers).
        size: (height, width), pixels; 0 for "by the other one".
        interpolation: torchvision's `InterpolationMode`.
    """

    def __init__(self, mode: str, size: list[int], interpolation: Any) -> None:
        self._mode = mode
        self._size = size
        self._interpolation = interpolation

    def __call__(self, image: Any) -> Any:
        """The resized Pillow image."""
        from torchvision.transforms import functional

        width, height = image.size
        scales = [side / was for side, was in zip(self._size, (height, width), strict=True) if side != _FULL]
        if not scales:
            return image
        if self._mode == "stretch" and _FULL not in self._size:
            wanted = list(self._size)
        else:
            scale = max(scales) if self._mode == "not_smaller" else min(scales)
            wanted = [max(1, round(height * scale)), max(1, round(width * scale))]
        if wanted == [height, width]:
            return image
        return functional.resize(image, wanted, self._interpolation)


class Window:
    """Cuts (height, width) pixels out of the middle; 0 and more than there is mean all of it."""

    def __init__(self, size: list[int]) -> None:
        self._size = size

    def __call__(self, image: Any) -> Any:
        """The middle of a Pillow image."""
        width, height = image.size
        return _middle(image, min(self._size[0] or height, height), min(self._size[1] or width, width))


class Share:
    """Cuts a share of both sides (height, width) out of the middle."""

    def __init__(self, share: list[float]) -> None:
        self._share = share

    def __call__(self, image: Any) -> Any:
        """The middle of a Pillow image."""
        width, height = image.size
        return _middle(image, max(1, round(height * self._share[0])), max(1, round(width * self._share[1])))


def _middle(image: Any, height: int, width: int) -> Any:
    left, top = (image.size[0] - width) // 2, (image.size[1] - height) // 2
    return image.crop((left, top, left + width, top + height))
