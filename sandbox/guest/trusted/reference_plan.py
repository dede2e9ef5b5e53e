"""Which torchvision transforms do the work of a DALI graph, so that the reference loader has the same job."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..graph import neutral, view
from ..graph.model import Graph, Operator
from ..graph.view import Step

_INTERPOLATION = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "lanczos", 4: "bilinear", 5: "bicubic"}
"""DALI's `DALIInterpType`; Pillow has no triangular and no Gaussian filter of its own, these cost as much."""
_LARGEST = 2
"""Times the final side to which the reference may resize before a crop. A graph that enlarges its images to cut a
piece out of them costs a GPU little and a CPU much, so the reference does not do that with it."""


def plan(
    graph: Graph,
    shape: list[int],
    dtype: str,
    output: int | None = None,
    *,
    work: Mapping[str, float] = MappingProxyType({}),
    sizes: Mapping[str, list[float]] = MappingProxyType({}),
) -> dict[str, Any]:
    """A JSON plan for `reference.transform`: geometry from the graph, sizes from the batch that came out.

    `view` holds the steps of `graph.view` as the graph has them, `steps` the least job with the same result: what a
    later step makes superfluous is left out. `geometry` names the job in one word. `turn`, `colour` and `blur` are the
    shares of images that this is done to.

    Args:
        graph: the learner's graph.
        shape: shape of one image in the batch, `[C, H, W]` or `[H, W, C]`.
        dtype: DALI's name of the batch's type.
        output: index of the pipeline output with the images; None for the first one that comes from a decoder.
        work: what the graph was seen to do, see `Experiments`.
        sizes: mean height and width of the images on an edge, by its name, where they were measured.
    """
    height, width = spatial(shape)
    path = view.path(graph, output)
    seen = view.steps(graph, output, sizes)
    return {
        "geometry": _geometry(seen),
        "size": [height, width],
        "view": seen,
        "steps": least(seen, height, width),
        **_window(seen),
        "interpolation": _interpolation(path),
        "mirror": any(operator.name == "Flip" or _mirrors(operator) for operator in path),
        **{name: round(work.get(name, 0.0), 2) for name in neutral.WORK},
        "floats": "FLOAT" in dtype,
        "channels": shape[0] if _channels_first(shape) else shape[-1],
    }


def least(seen: list[Step], height: int, width: int) -> list[Step]:
    """The fewest steps that show the same part of an image at the same final size.

    Resizes before another resize or a random resized crop are left out, a random crop takes the final size at once,
    and a resize before a crop is held to twice the final size.
    """
    kept: list[Step] = []
    for index, step in enumerate(seen):
        later = {after["op"] for after in seen[index + 1 :]}
        if step["op"] == "resize":
            if "resize" in later or "random_resized_crop" in later or "crop" not in later:
                continue
            limits = (_LARGEST * height, _LARGEST * width)
            size = [min(side, limit) for side, limit in zip(step["size"], limits, strict=True)]
            kept.append({"op": "resize", "mode": step["mode"], "size": size})
        elif step["op"] in ("random_crop", "random_resized_crop"):
            # Sizes between two random windows play no part: only the last one is kept.
            kept = [{"op": "random_resized_crop", "area": step["area"], "ratio": step["ratio"]}]
        elif step["op"] == "pad":
            kept.append(dict(step))
        elif step["op"] in ("crop", "slice"):
            kept.append({key: value for key, value in step.items() if key != "decoder"})
    return kept


def _geometry(seen: list[Step]) -> str:
    kinds = {step["op"] for step in seen}
    if kinds & {"random_crop", "random_resized_crop"}:
        return "random_resized_crop"
    crops = bool(kinds & {"crop", "slice", "unknown"})
    if crops and "resize" in kinds:
        return "resize_and_crop"
    return "crop" if crops else "resize"


def _window(seen: list[Step]) -> dict[str, list[float]]:
    """Area and aspect ratio of the last random crop; torchvision's defaults where there is none."""
    found = [step for step in seen if step["op"] in ("random_crop", "random_resized_crop")]
    last = found[-1] if found else {"area": list(view.AREA), "ratio": list(view.RATIO)}
    return {"scale": list(last["area"]), "ratio": list(last["ratio"])}


def _interpolation(path: list[Operator]) -> str:
    """Of the last operator that resizes: DALI's and torchvision's default is bilinear."""
    for operator in reversed(path):
        if "Resize" in operator.name:
            value = operator.scalar("min_filter")
            value = operator.scalar("interp_type") if value is None else value
            return _INTERPOLATION.get(value, "bilinear") if isinstance(value, int) else "bilinear"
    return "bilinear"


def _channels_first(shape: Sequence[int]) -> bool:
    return shape[0] in (1, 3, 4) and shape[-1] not in (1, 3, 4)


def spatial(shape: Sequence[int]) -> tuple[int, int]:
    """Height and width of an image `[C, H, W]` or `[H, W, C]`."""
    return (shape[1], shape[2]) if _channels_first(shape) else (shape[0], shape[1])


def _mirrors(operator: Operator) -> bool:
    return view.wired(operator, "mirror") is not None or bool(operator.scalar("mirror"))
