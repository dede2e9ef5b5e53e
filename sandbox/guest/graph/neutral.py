"""The plain twin of a graph: the same work with the operators that change colours set to do nothing.

An image's identity is its colour. Where the learner's graph changes colours, the twin shows that the images behind the
change are the shard's own.
"""

from . import model
from .allowed import DECODERS, READERS
from .model import Edge, Graph
from .view import path

_SETTINGS = ("brightness", "brightness_shift", "contrast", "contrast_center", "hue", "saturation", "value")
COLOUR = frozenset({
    "Brightness", "BrightnessContrast", "ColorTwist", "Contrast", "Hsv", "Hue", "Saturation",
})  # fmt: skip
# Behind these an image can still be recognised, and compared with the file.
_TRANSPARENT = COLOUR | DECODERS | frozenset({
    "Cast", "CastLike", "Copy", "Crop", "CropMirrorNormalize", "ExpandDims", "FastResizeCropMirror", "Flip",
    "MakeContiguous", "Pad", "RandomResizedCrop", "Reinterpret", "Reshape", "Resize", "ResizeCropMirror", "Slice",
    "Squeeze", "TensorResize", "Transpose", "experimental__Resize", "experimental__TensorResize",
})  # fmt: skip


def changes_colours(graph: Graph) -> bool:
    """Whether the mean colour of an image is no longer its own when it leaves the graph."""
    return any(operator.name in COLOUR for operator in graph.operators)


def opaque_operators(graph: Graph, output: int) -> list[str]:
    """Operators between the decoder and the images, behind which one may not be recognised although it was decoded.

    None where no decoder feeds the output: then there is nothing that they could hide.
    """
    return sorted({operator.name for operator in path(graph, output)} - _TRANSPARENT)


def plain_twin(data: bytes) -> tuple[bytes, int | None]:
    """The serialized graph with colours left alone, and the labels of the reader as one more output.

    Returns:
        The graph, and the index of the added output; None when no reader has labels.
    """
    graph = model.read(data)
    for operator in graph.operators:
        if operator.name in COLOUR:
            operator.drop(*_SETTINGS)
            operator.inputs = [edge for edge in operator.inputs if _argument_of(edge) not in _SETTINGS]
    labels = next((op.outputs[1] for op in graph.operators if op.name in READERS and len(op.outputs) > 1), None)
    if labels is None:
        return model.write(graph), None
    for place, edge in enumerate(graph.outputs):
        if (edge.name, edge.device) == (labels.name, labels.device):
            return model.write(graph), place
    graph.outputs.append(Edge(labels.name, labels.device, list(labels.rest)))
    return model.write(graph), len(graph.outputs) - 1


def _argument_of(edge: Edge) -> str:
    """Name of the argument that an input feeds; empty for a plain input."""
    return next((part.value.decode() for part in edge.rest if isinstance(part.value, bytes)), "")
