"""A graph without some of its operators, to see what they did."""

import copy
from collections.abc import Set as AbstractSet

from . import flow
from .model import Graph

WORK = ("turn", "colour", "blur")
"""Kinds of work that the reference loader does to as many images as the graph was seen to."""


def workers(graph: Graph, output: int) -> dict[str, set[int]]:
    """Kind of work (one of `WORK`) to the places of the operators that do it with an output's images."""
    images = flow.image_edges(graph)
    found: dict[str, set[int]] = {}
    for place in sorted(flow.behind(graph, output)):
        operator = graph.operators[place]
        row, inputs = operator.row, flow.worked_on(operator)
        if row.neutral and row.work in WORK and inputs and inputs[0].name in images:
            found.setdefault(row.work, set()).add(place)
    return found


def without(graph: Graph, places: AbstractSet[int]) -> Graph:
    """A copy in which these operators hand their first input on as it is."""
    left = copy.deepcopy(graph)
    gone: dict[str, tuple[str, str]] = {}
    for place in sorted(places):
        operator = left.operators[place]
        source = flow.worked_on(operator)[0]
        gone[operator.outputs[0].name] = gone.get(source.name, (source.name, source.device))
    for edge in [*left.outputs, *(edge for operator in left.operators for edge in operator.inputs)]:
        if edge.name in gone:
            edge.name, edge.device = gone[edge.name]
    left.operators = [operator for place, operator in enumerate(left.operators) if place not in places]
    return left
