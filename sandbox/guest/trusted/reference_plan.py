"""Which torchvision transforms do the work of a DALI graph, so that the reference loader has the same job."""

from typing import Any

from ..graph.edit import DECODERS
from ..graph.model import Graph, Operator

_COLOUR = frozenset({
    "ColorTwist", "Brightness", "Contrast", "BrightnessContrast", "Hsv", "Hue", "Saturation",
})  # fmt: skip
_TURN = frozenset({"Rotate", "WarpAffine"})


def plan(graph: Graph, shape: list[int], dtype: str) -> dict[str, Any]:
    """A JSON plan for `reference.transform`: geometry from the graph, sizes from the batch that came out.

    Args:
        graph: the learner's graph.
        shape: shape of one image in the batch, `[C, H, W]` or `[H, W, C]`.
        dtype: DALI's name of the batch's type.
    """
    height, width = _spatial(shape)
    names = {operator.name for operator in graph.operators}
    random_crop = any("RandomCrop" in name and name in DECODERS for name in names) or "RandomResizedCrop" in names
    crops = any(_crops(operator) for operator in graph.operators)
    resizes = bool(names & {"Resize", "ResizeCropMirror", "FastResizeCropMirror", "experimental__Resize"})
    if random_crop:
        geometry = "random_resized_crop"
    elif crops and resizes:
        geometry = "resize_and_crop"
    elif crops:
        geometry = "crop"
    else:
        geometry = "resize"
    return {
        "geometry": geometry,
        "size": [height, width],
        "mirror": "Flip" in names or any(_mirrors(operator) for operator in graph.operators),
        "colour": bool(names & _COLOUR),
        "turn": bool(names & _TURN),
        "blur": "GaussianBlur" in names,
        "floats": "FLOAT" in dtype,
        "channels": shape[0] if _channels_first(shape) else shape[-1],
    }


def _channels_first(shape: list[int]) -> bool:
    return shape[0] in (1, 3, 4) and shape[-1] not in (1, 3, 4)


def _spatial(shape: list[int]) -> tuple[int, int]:
    return (shape[1], shape[2]) if _channels_first(shape) else (shape[0], shape[1])


def _crops(operator: Operator) -> bool:
    if operator.name in ("Crop", "Slice") or "ImageCrop" in operator.name or "ImageSlice" in operator.name:
        return True
    return any(operator.get(name) for name in ("crop", "crop_h", "crop_w"))


def _mirrors(operator: Operator) -> bool:
    wired = any(part.value == b"mirror" for edge in operator.inputs for part in edge.rest)
    return wired or bool(operator.scalar("mirror"))
