"""What part of each image a graph keeps, step by step from its decoder to its images.

Steps are JSON objects, in order; lengths are pixels:

* `{"op": "random_resized_crop", "area": [low, high], "ratio": [low, high]}`: a window of random share and width/height;
* `{"op": "crop", "size": [height, width]}`: cut, or padded, to this size;
* `{"op": "resize", "size": [height, width]}`, or with the shorter side alone.

Sizes are those that were measured, whatever the graph says of them. Read is what a mean size does not tell: how random
a window is, that images of several shapes keep theirs, and which region of an image a resize takes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from . import flow
from .model import Graph, Operator

Step = dict[str, Any]
Size = Sequence[float]
"""Mean height and width; empty where they are not known."""
_AREA, _RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
"""Defaults of DALI and of torchvision alike."""
_LEAST = 1e-4
"""Least area and ratio, so that logarithms and square roots of what a learner wrote exist."""


def path(graph: Graph, output: int) -> list[Operator]:
    """The operators that an image of an output passes, decoder first; empty when it comes from no decoder.

    Those within conditional branches are left out, since not every image passes them.

    Args:
        graph: operators stand in the order in which DALI runs them.
        output: index of the output with the images.
    """
    makers = {edge.name: operator for operator in graph.operators for edge in operator.outputs}
    decoded, branches = flow.image_edges(graph), flow.branches(graph)
    name = next((edge.name for edge in graph.outputs[output : output + 1] if edge.name in decoded), None)
    passed: list[Operator] = []
    while name is not None and name in makers and len(passed) < len(graph.operators):
        operator = makers[name]
        if operator.outputs[0].name not in branches:
            passed.append(operator)
        if operator.row.role == "decoder":
            break
        name = next((edge.name for edge in flow.worked_on(operator) if edge.name in decoded), None)
    return passed[::-1]


def steps(graph: Graph, output: int, sizes: Mapping[str, Size]) -> list[Step]:
    """The windows and sizes of an image on its way through the graph; see the module.

    Args:
        graph: operators stand in the order in which DALI runs them.
        output: index of the output with the images.
        sizes: of the images on an edge, by its name.
    """
    found: list[Step] = []
    before: Size = ()
    for operator in path(graph, output):
        after = sizes.get(operator.outputs[0].name) or ()
        found += _steps_of(operator, before, after)
        before = after or before
    return found


def _steps_of(operator: Operator, before: Size, after: Size) -> list[Step]:
    row = operator.row
    if row.work == "random_resized_crop" or (row.window and row.random):
        area, ratio = _range(operator, "random_area", _AREA), _range(operator, "random_aspect_ratio", _RATIO)
        return [{"op": "random_resized_crop", "area": area, "ratio": ratio}] if area and ratio else []
    if not after:
        return []
    if row.resizes:
        # A graph that bounds the longer side as well makes images smaller than it says; a region has sides of its own.
        region = operator.get("roi_start") or operator.wired("roi_start")
        sides = [] if region else _numbers(operator, "resize_shorter")
        shorter = [side for side in sides if 0 < side <= min(after) + 1]
        return [*_region(operator, before), {"op": "resize", "size": _pixels(shorter[:1] or after)}]
    # Batches are mixed from branches with other images each, so that means differ before and after.
    cuts = row.work in ("", "crop") and not row.passes
    return [{"op": "crop", "size": _pixels(after)}] if row.window or (cuts and before and after != before) else []


def _region(operator: Operator, before: Size) -> list[Step]:
    """What a resize takes of an image, when the graph says it in numbers."""
    ends = zip(_numbers(operator, "roi_start"), _numbers(operator, "roi_end"), strict=False)
    extent = [abs(high - low) for low, high in ends]
    if len(extent) != 2 or len(before) != 2:
        return []
    if operator.scalar("roi_relative"):
        extent = [share * side for share, side in zip(extent, before, strict=True)]
    return [{"op": "crop", "size": _pixels([min(pair) for pair in zip(extent, before, strict=True)])}]


def _range(operator: Operator, name: str, default: tuple[float, float]) -> list[float]:
    """Both ends; empty when the argument is there and cannot be read, so that it is not taken for the default."""
    values = list(default) if operator.get(name) is None else _numbers(operator, name)
    return [round(max(end, _LEAST), 6) for end in (min(values), max(values))] if values else []


def _numbers(operator: Operator, name: str) -> list[float]:
    argument = operator.get(name)
    values = argument.values if argument else []
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return numbers if all(map(math.isfinite, numbers)) else []


def _pixels(size: Size) -> list[int]:
    return [max(1, round(side)) for side in size]
