"""How images and numbers flow through a graph: which edges hold images, and what decides what is done with them."""

from collections.abc import Set as AbstractSet

from .model import Edge, Graph, Operator
from .operators import CONTAINERS, DECODERS, READERS

_MIXERS = frozenset({"PermuteBatch", "MultiPaste"})


def image_edges(graph: Graph) -> set[str]:
    """Names of the edges that descend from a decoder of a reader's files, by what operators work on."""
    encoded = {op.outputs[0].name for op in graph.operators if op.name in READERS and op.outputs}
    encoded |= {edge.name for op in graph.operators if op.name in CONTAINERS for edge in op.outputs}
    images: set[str] = set()
    for operator in graph.operators:
        sources = {edge.name for edge in plain_inputs(operator)}
        if operator.name in DECODERS:
            found = bool(sources & encoded)
        else:
            found = bool(sources & images)
            if not found and sources & encoded and operator.name not in READERS:
                encoded |= {edge.name for edge in operator.outputs}
        if found:
            images |= {edge.name for edge in operator.outputs}
    return images


def plain_inputs(operator: Operator) -> list[Edge]:
    """What an operator works on, as opposed to what steers it."""
    return [edge for edge in operator.inputs if not edge.steers]


def behind(graph: Graph, output: int) -> set[int]:
    """Places of the operators that an output of the pipeline hangs on in any way."""
    return _ancestors(graph, {graph.outputs[output].name})


def path_decoders(graph: Graph, output: int) -> list[int]:
    """Places of the decoders whose images reach an output."""
    images = image_edges(graph)
    wanted, found = {graph.outputs[output].name}, []
    for place in range(len(graph.operators) - 1, -1, -1):
        operator = graph.operators[place]
        made = {edge.name for edge in operator.outputs}
        if made & wanted and made & images:
            if operator.name in DECODERS:
                found.append(place)
            else:
                wanted |= {edge.name for edge in plain_inputs(operator)}
    return found[::-1]


def steering(graph: Graph, output: int) -> set[int]:
    """Places of the operators that decide what is done with the images of an output: arguments, conditions, numbers."""
    images = image_edges(graph)
    wires = set()
    for place in behind(graph, output):
        operator = graph.operators[place]
        plain = [edge.name for edge in plain_inputs(operator)]
        worked_on = set(plain[:1]) if operator.name in DECODERS else set(plain) & images
        wires |= {edge.name for edge in operator.inputs if edge.steers or edge.name not in worked_on}
    return _ancestors(graph, wires)


def doubt(graph: Graph, output: int) -> str:
    """Why experiments with a graph would say nothing of what it does later; empty when they do.

    A graph has no memory beside the state of random operators and readers, whose seeds and files are the grader's. So
    what is left to know whether it is being watched are names of files, and what one sample learns of another.
    """
    for place in behind(graph, output):
        operator = graph.operators[place]
        if operator.name == "GetProperty" and operator.scalar("key") == "source_info":
            return "fn.get_property(key='source_info') lets the graph treat files by their names."
    if mixers := mixes(graph, steering(graph, output)):
        return f"{mixers[0]} lets one image of a batch decide what is done with the others."
    return ""


def mixes(graph: Graph, places: AbstractSet[int]) -> list[str]:
    """Names of those among these operators that let one sample of a batch have a say in another one."""
    found = [graph.operators[place] for place in sorted(places)]
    return [op.name for op in found if op.name in _MIXERS or (op.name == "Normalize" and op.scalar("batch"))]


def drop_idle(graph: Graph) -> list[str]:
    """Removes operators that no output hangs on; returns their names."""
    used = _ancestors(graph, {edge.name for edge in graph.outputs})
    gone = [operator.name for place, operator in enumerate(graph.operators) if place not in used]
    graph.operators = [operator for place, operator in enumerate(graph.operators) if place in used]
    return gone


def _ancestors(graph: Graph, names: set[str]) -> set[int]:
    wanted, found = set(names), set()
    for place in range(len(graph.operators) - 1, -1, -1):
        operator = graph.operators[place]
        if any(edge.name in wanted for edge in operator.outputs):
            found.add(place)
            wanted |= {edge.name for edge in operator.inputs}
    return found
