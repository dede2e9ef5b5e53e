"""Which torchvision transforms do the work of a DALI graph, so that the reference loader has the same job."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph import flow, neutral, view
from ..graph.model import Graph, Operator
from ..graph.view import Step

_NEAREST = 0
"""DALI's `DALIInterpType`."""
_FILTERS = ("interp_type", "min_filter", "mag_filter")
_AT_LEAST = 0.9
"""Of the final size: what is smaller was not what made the images as large as they are."""
_OF_IMAGE = 0.5
"""Of the final size: an image that is put into a square has more."""
_LARGEST = 2
"""Times the final side to which the reference may resize before a crop. A graph that enlarges its images to cut a
piece out of them costs a GPU little and a CPU much, so the reference does not do that with it."""


def plan(
    graph: Graph,
    shape: list[int],
    dtype: str,
    output: int,
    *,
    work: Mapping[str, float],
    sizes: Mapping[str, view.Size],
) -> dict[str, Any]:
    """A JSON plan for `reference.transform`: `steps` are the least job that shows the same part at the same final size.

    `turn`, `colour` and `blur` are the shares of images that this is done to. Where nothing is known of an image's way,
    such as where DALI does not give its images out, the reference cuts out the middle: no job of that size is less.

    Args:
        shape: shape of one image in the batch, `[C, H, W]` or `[H, W, C]`.
        dtype: DALI's name of the batch's type.
        output: index of the pipeline output with the images.
        work: what the graph was seen to do, see `Experiments`.
        sizes: mean height and width of the images on an edge, by its name.
    """
    path = view.path(graph, output)
    height, width = _worked_for(path, sizes, *spatial(shape))
    seen = view.steps(graph, output, sizes) or [{"op": "crop", "size": [height, width]}]
    return {
        "size": [height, width],
        "steps": least(seen, height, width),
        "interpolation": "bilinear" if _smooth(path, sizes, height * width) else "nearest",
        "mirror": any(op.row.work == "mirror" or op.wired("mirror") or op.scalar("mirror") for op in path),
        **{name: round(work.get(name, 0.0), 2) for name in neutral.WORK},
        "floats": "FLOAT" in dtype,
        "channels": shape[0] if _channels_first(shape) else shape[-1],
        "grey": any(op.row.role == "decoder" and op.scalar("output_type") == flow.GRAY for op in path),
    }


def least(seen: list[Step], height: int, width: int) -> list[Step]:
    """The fewest steps that show the same part of an image at the same final size.

    Nothing before a random window is kept, and of resizes only the last one before a crop, held to twice the final
    size.
    """
    kept: list[Step] = []
    resized = cropped = False
    for step in reversed(seen):
        if step["op"] != "resize":
            kept.append(step)
            cropped = True
        elif cropped and not resized:
            final = (height, width) if len(step["size"]) == 2 else (min(height, width),)
            size = [min(side, _LARGEST * limit) for side, limit in zip(step["size"], final, strict=True)]
            kept.append({"op": "resize", "size": size})
        resized = resized or step["op"] == "resize"
        if step["op"] == "random_resized_crop":
            break
    return kept[::-1]


def _worked_for(path: list[Operator], sizes: Mapping[str, view.Size], height: int, width: int) -> tuple[int, int]:
    """The final size, or a smaller one of the same shape where the last decoder or resize made far fewer pixels.

    What is put around an image, or repeated, is no work that a loader has to match.
    """
    made = [op for op in path if op.row.role == "decoder" or op.row.resizes]
    pixels = math.prod(sizes.get(made[-1].outputs[0].name) or (math.inf,)) if made else math.inf
    if pixels >= _OF_IMAGE * height * width:
        return height, width
    scale = math.sqrt(pixels / (height * width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def _smooth(path: list[Operator], sizes: Mapping[str, view.Size], pixels: int) -> bool:
    """Whether an operator resizes to the final size with a filter; where none is known to, the nearest pixel will do.

    No filter costs the reference more than the bilinear one, whatever the graph's is.
    """
    for operator in path:
        if (
            not operator.row.resizes
            or operator.wired(*_FILTERS)
            or any(operator.scalar(name) == _NEAREST for name in _FILTERS)
        ):
            continue
        if math.prod(sizes.get(operator.outputs[0].name) or (0,)) >= _AT_LEAST * pixels:
            return True
    return False


def _channels_first(shape: Sequence[int]) -> bool:
    return shape[0] in (1, 3, 4) and shape[-1] not in (1, 3, 4)


def spatial(shape: Sequence[int]) -> tuple[int, int]:
    """Height and width of an image `[C, H, W]` or `[H, W, C]`."""
    return (shape[1], shape[2]) if _channels_first(shape) else (shape[0], shape[1])
