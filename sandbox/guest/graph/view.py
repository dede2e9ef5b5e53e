"""What part of each image a graph decodes and keeps, step by step from its decoder to its images.

Steps are JSON objects, in order; lengths are pixels, 0 stands for "as it comes":

* `{"op": "random_crop", "area": [low, high], "ratio": [low, high]}`: a window of random share and width/height;
* `{"op": "random_resized_crop", …, "size": [height, width]}`: the same, resized;
* `{"op": "crop", "size": [height, width]}`: a window of fixed size;
* `{"op": "slice", "share": [height, width]}`: a window of a fixed share of both sides;
* `{"op": "resize", "mode": "stretch" | "not_larger" | "not_smaller", "size": [height, width]}`;
* `{"op": "pad", "inner": [height, width], "size": [height, width]}`: an image with something around it, as measured;
* `{"op": "unknown"}`: a window that the graph computes in a way that is not read here;

`"decoder": true` marks a window that the decoder itself cuts out, so that the rest of the image costs it less.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from . import flow
from .model import Edge, Graph, Operator
from .operators import CROPS, DECODERS, RESIZES, kind

Step = dict[str, Any]
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""Defaults of DALI and of torchvision alike."""
_ENLARGED = 1.05
"""An image that has so many times as many pixels afterwards was padded; less is a matter of rounding."""
_MOST_PIXELS = 65536.0
_LEAST = 1e-4
"""Least area and ratio, so that logarithms and square roots of what a learner wrote exist."""


def path(graph: Graph, output: int | None = None) -> list[Operator]:
    """The operators that an image passes, decoder first; empty when no output comes from a decoder.

    Args:
        graph: operators stand in the order in which DALI runs them.
        output: index of the output with the images; None for the first one that comes from a decoder.
    """
    makers = {edge.name: operator for operator in graph.operators for edge in operator.outputs}
    decoded = flow.image_edges(graph)
    wanted = graph.outputs if output is None else graph.outputs[output : output + 1]
    name = next((edge.name for edge in wanted if edge.name in decoded), None)
    passed: list[Operator] = []
    while name is not None and name in makers and len(passed) < len(graph.operators):
        operator = makers[name]
        passed.append(operator)
        if operator.name in DECODERS:
            break
        name = next((edge.name for edge in flow.plain_inputs(operator) if edge.name in decoded), None)
    return passed[::-1]


def steps(
    graph: Graph, output: int | None = None, sizes: Mapping[str, Sequence[float]] = MappingProxyType({})
) -> list[Step]:
    """The windows and sizes of an image on its way through the graph; see the module.

    Args:
        graph: operators stand in the order in which DALI runs them.
        output: index of the output with the images; None for the first one that comes from a decoder.
        sizes: mean height and width of the images on an edge, by its name, for what the graph computes.
    """
    passed = path(graph, output)
    found: list[Step] = []
    for operator in passed:
        found += _padded(operator, sizes) or [_measured(step, operator, sizes) for step in _steps_of(operator, graph)]
    return found


def _padded(operator: Operator, sizes: Mapping[str, Sequence[float]]) -> list[Step]:
    """The step of an operator that makes images larger without a resize; empty for any other."""
    row, after = kind(operator.name), sizes.get(operator.outputs[0].name) or []
    before = [size for edge in flow.plain_inputs(operator)[:1] for size in sizes.get(edge.name) or []]
    if not before or not after or row is None or row.work not in ("", "crop") or operator.name == "RandomResizedCrop":
        return []
    if math.prod(after) <= _ENLARGED * math.prod(before):
        return []
    inner = [_pixels(min(was, side)) for was, side in zip(before, after, strict=True)]
    return [{"op": "pad", "inner": inner, "size": [_pixels(side) for side in after]}]


def _measured(step: Step, operator: Operator, sizes: Mapping[str, Sequence[float]]) -> Step:
    """The step as it came out, where its size or window is computed in the graph."""
    after = sizes.get(operator.outputs[0].name) or []
    before = [size for edge in flow.plain_inputs(operator)[:1] for size in sizes.get(edge.name) or []]
    if step["op"] == "resize" and not any(step["size"]) and after:
        return {**step, "mode": "stretch", "size": [_pixels(side) for side in after]}
    if step["op"] == "unknown" and after and before and operator.name not in RESIZES:
        share = [round(min(1.0, side / max(1.0, was)), 2) for side, was in zip(after, before, strict=True)]
        return {"op": "slice", "share": share}
    return step


def wired(operator: Operator, name: str) -> Edge | None:
    """The input that feeds an argument, when another operator computes it."""
    return next((edge for edge in operator.inputs if edge.steers and edge.argument == name), None)


def _steps_of(operator: Operator, graph: Graph) -> list[Step]:
    name = operator.name
    if name in DECODERS:
        if "RandomCrop" in name:
            window: list[Step] = [_random("random_crop", operator)]
        elif "Slice" in name:
            window = _slice(operator, graph)
        else:
            window = _crop(operator)
        return [{**step, "decoder": True} for step in window]
    if name == "RandomResizedCrop":
        return [{**_random("random_resized_crop", operator), "size": _size(operator, "size", "", "")}]
    if name == "Slice":
        return _slice(operator, graph)
    found: list[Step] = []
    if name in RESIZES:
        found += [*_roi(operator), _resize(operator)]
    if name in CROPS:
        found += _crop(operator)
    if name in ("_TensorSubscript", "TensorSubscript"):
        found += _subscript(operator)
    return found


def _random(kind: str, operator: Operator) -> Step:
    area, ratio = _range(operator, "random_area", AREA), _range(operator, "random_aspect_ratio", RATIO)
    return {"op": kind, "area": area, "ratio": ratio} if area and ratio else {"op": "unknown"}


def _range(operator: Operator, name: str, default: tuple[float, float]) -> list[float]:
    """Both ends; empty when the argument is there and cannot be read, so that it is not taken for the default."""
    values = list(default) if operator.get(name) is None else _numbers(operator, name)
    return [round(max(end, _LEAST), 6) for end in (min(values), max(values))] if values else []


def _resize(operator: Operator) -> Step:
    for name, mode in (("resize_shorter", "not_smaller"), ("resize_longer", "not_larger")):
        values = _numbers(operator, name)
        if values and values[0] > 0:
            return {"op": "resize", "mode": mode, "size": [_pixels(values[0])] * 2}
    mode = str(operator.scalar("mode") or "default")
    size = _size(operator, "size", "resize_y", "resize_x")
    return {"op": "resize", "mode": mode if mode in ("not_larger", "not_smaller") else "stretch", "size": size}


def _roi(operator: Operator) -> list[Step]:
    start, end = _numbers(operator, "roi_start"), _numbers(operator, "roi_end")
    if wired(operator, "roi_start") or wired(operator, "roi_end"):
        return [{"op": "unknown"}]
    if not start and not end:
        return []
    if len(start) != 2 or len(end) != 2:
        return [{"op": "unknown"}]
    extent = [abs(high - low) for low, high in zip(start, end, strict=True)]
    if operator.scalar("roi_relative"):
        return [{"op": "slice", "share": extent}]
    return [{"op": "crop", "size": [_pixels(side) for side in extent]}]


def _crop(operator: Operator) -> list[Step]:
    if any(wired(operator, name) for name in ("crop", "crop_h", "crop_w")):
        return [{"op": "unknown"}]
    size = _size(operator, "crop", "crop_h", "crop_w")
    return [{"op": "crop", "size": size}] if any(size) else []


def _size(operator: Operator, both: str, height: str, width: str) -> list[int]:
    """[height, width] from one argument for both or one for each; 0 where nothing is said."""
    values = _numbers(operator, both)
    if len(values) == 1:
        values *= 2
    if len(values) < 2:
        values = [next(iter(_numbers(operator, name)), 0.0) for name in (height, width)]
    return [_pixels(value) for value in values[-2:]]


def _slice(operator: Operator, graph: Graph) -> list[Step]:
    wires = ("start", "end", "shape", "rel_start", "rel_end", "rel_shape")
    if any(wired(operator, name) for name in wires):
        return [{"op": "unknown"}]
    inputs = flow.plain_inputs(operator)
    extents: list[tuple[float, bool]] | None
    if len(inputs) >= 3:
        maker = _maker(graph, inputs[2])
        if maker is not None and maker.name == "RandomCropGenerator":
            return [_random("random_crop", maker)]
        relative = operator.scalar("normalized_shape") is not False
        values = _expected(maker)
        extents = None if values is None else [(value, relative) for value in values]
    else:
        extents = _named_extents(operator)
    sides = _height_width(operator, extents)
    if sides is None:
        return [{"op": "unknown"}]
    if all(relative for _, relative in sides):
        return [{"op": "slice", "share": [round(min(abs(value), 1.0), 6) for value, _ in sides]}]
    if any(relative and value < 1 for value, relative in sides):
        return [{"op": "unknown"}]
    return [{"op": "crop", "size": [0 if relative else _pixels(value) for value, relative in sides]}]


def _named_extents(operator: Operator) -> list[tuple[float, bool]] | None:
    """Extent of each sliced axis, and whether it is a share of the image, from the named arguments."""
    found = {name: _numbers(operator, name) for name in ("start", "end", "shape", "rel_start", "rel_end", "rel_shape")}
    if found["rel_shape"]:
        return [(value, True) for value in found["rel_shape"]]
    if found["shape"]:
        return [(value, False) for value in found["shape"]]
    if found["rel_end"] and not found["start"]:
        starts = found["rel_start"] or [0.0] * len(found["rel_end"])
        return [(high - low, True) for low, high in zip(starts, found["rel_end"], strict=False)]
    if found["end"] and not found["rel_start"]:
        starts = found["start"] or [0.0] * len(found["end"])
        return [(high - low, False) for low, high in zip(starts, found["end"], strict=False)]
    if found["rel_start"] and not found["end"]:
        return [(1 - low, True) for low in found["rel_start"]]
    return None


def _height_width(operator: Operator, extents: Sequence[tuple[float, bool]] | None) -> list[tuple[float, bool]] | None:
    """The extents in the order height, width; an axis that is not sliced keeps all of it."""
    if extents is None:
        return None
    axes = [{0: "H", 1: "W"}.get(int(axis), "?") for axis in _numbers(operator, "axes")]
    names = axes or list(str(operator.scalar("axis_names") or "WH"))
    if len(extents) == 1:
        extents = list(extents) * len(names)
    by_name = dict(zip(names, extents, strict=False))
    return [by_name.get("H", (1.0, True)), by_name.get("W", (1.0, True))]


def _subscript(operator: Operator) -> list[Step]:
    """Python slices such as `images[10:100, :50]`; numbers only, and of the first two axes."""
    names = ("lo_0", "hi_0", "lo_1", "hi_1", "at_0", "at_1", "step_0", "step_1")
    if any(wired(operator, name) for name in names):
        return [{"op": "unknown"}]
    values = {name: next(iter(_numbers(operator, name)), None) for name in names}
    size = []
    for axis in (0, 1):
        low, high = values[f"lo_{axis}"], values[f"hi_{axis}"]
        if low is None and high is None:
            size.append(0)
        elif high is None or high <= (low or 0.0) or (low or 0.0) < 0:
            return [{"op": "unknown"}]
        else:
            size.append(_pixels(high - (low or 0.0)))
    return [{"op": "crop", "size": size}] if any(size) else []


def _maker(graph: Graph, edge: Edge) -> Operator | None:
    return next((op for op in graph.operators if any(out.name == edge.name for out in op.outputs)), None)


def _expected(maker: Operator | None) -> list[float] | None:
    """The mean of what a constant or a uniform generator gives."""
    if maker is None:
        return None
    if maker.name == "Constant":
        return _numbers(maker, "fdata") or _numbers(maker, "idata") or None
    ends = _numbers(maker, "range")
    plain = not wired(maker, "range") and maker.get("values") is None
    if maker.name in ("random__Uniform", "Uniform") and len(ends) == 2 and plain:
        return [sum(ends) / 2]
    return None


def _numbers(operator: Operator, name: str) -> list[float]:
    argument = operator.get(name) if name else None
    values = argument.values if argument else []
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return numbers if all(map(math.isfinite, numbers)) else []


def _pixels(value: float) -> int:
    return round(min(max(value, 0.0), _MOST_PIXELS))
