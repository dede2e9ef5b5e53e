"""How images and numbers flow through a graph: which edges hold images, and what decides what is done with them."""

from collections.abc import Set as AbstractSet

from .model import Edge, Graph, Operator

GRAY = 2
"""DALI's `DALIImageType`."""


def image_edges(graph: Graph) -> set[str]:
    """Names of the edges that descend from a decoder of a reader's files, by what operators work on."""
    encoded = {op.outputs[0].name for op in graph.operators if op.row.role == "reader" and op.outputs}
    encoded |= {edge.name for op in graph.operators if op.row.role == "container" for edge in op.outputs}
    images: set[str] = set()
    for operator in graph.operators:
        sources = {edge.name for edge in worked_on(operator)}
        if operator.row.role == "decoder":
            found = bool(sources & encoded)
        else:
            found = bool(sources & images)
            if sources & encoded and operator.row.passes:
                encoded |= {edge.name for edge in operator.outputs}
        if found:
            images |= {edge.name for edge in operator.outputs}
    return images


def worked_on(operator: Operator) -> list[Edge]:
    """What an operator works on, as opposed to what steers it."""
    return [edge for edge in operator.inputs if not edge.steers][: operator.row.takes]


def branches(graph: Graph) -> set[str]:
    """Names of the edges within conditional branches, which only some samples of a batch take."""
    within: set[str] = set()
    depths: dict[str, int] = {}
    for operator in graph.operators:
        depth = max((depths.get(edge.name, 0) for edge in operator.inputs), default=0)
        depth += {"split": 1, "merge": -1}.get(operator.row.branch, 0)
        for edge in operator.outputs:
            depths[edge.name] = max(depth, 0)
            if depth > 0:
                within.add(edge.name)
    return within


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
            if operator.row.role == "decoder":
                found.append(place)
            else:
                wanted |= {edge.name for edge in worked_on(operator)}
    return found[::-1]


def steering(graph: Graph, output: int) -> set[int]:
    """Places of the operators that decide what is done with the images of an output: arguments, conditions, numbers."""
    images = image_edges(graph)
    wires = set()
    for place in behind(graph, output):
        operator = graph.operators[place]
        passed = {edge.name for edge in worked_on(operator) if edge.name in images or operator.row.role == "decoder"}
        wires |= {edge.name for edge in operator.inputs if edge.steers or edge.name not in passed}
    return _ancestors(graph, wires)


def doubt(graph: Graph, output: int) -> str:
    """Why experiments with a graph would say nothing of what it does later; empty when they do.

    A graph has no memory beside the state of random operators and readers, whose seeds and files are the grader's. So
    what is left to know whether it is being watched are names of files, and what one sample learns of another.
    """
    for place in behind(graph, output):
        operator = graph.operators[place]
        if operator.row.tells_file and operator.scalar("key") == "source_info":
            return "fn.get_property(key='source_info') lets the graph treat files by their names."
    kinds = {op.scalar("output_type") for op in graph.operators if op.row.role == "decoder"}
    if GRAY in kinds and len(kinds) > 1:
        return "Files are decoded both in grey and in colours; decode once and use fn.color_space_conversion."
    within = branches(graph)
    decoded = {edge.name for place in path_decoders(graph, output) for edge in graph.operators[place].outputs}
    if graph.outputs[output].name in within or decoded & within:
        return "A condition splits the batch before an image is decoded, or what it splits is never merged again."
    if mixers := mixes(graph, steering(graph, output)):
        return (
            f"{mixers[0]} lets one image of a batch decide what is done with the others. Give sizes as numbers, such "
            "as shape=[224, 224], not as images.shape() of what it made."
        )
    return ""


def mixes(graph: Graph, places: AbstractSet[int]) -> list[str]:
    """Names of those among these operators that let one sample of a batch have a say in another one."""
    return [graph.operators[place].name for place in sorted(places) if _mixes(graph.operators[place])]


def _mixes(operator: Operator) -> bool:
    when = operator.row.mixes
    if when == "if_batch":
        return bool(operator.scalar("batch"))
    if when == "unless_shape":  # then every sample is made as large as the largest of its batch
        shape = operator.get("shape")
        return shape is None or not all(isinstance(side, int) and side > 0 for side in shape.values or (0,))
    return when == "always"


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
