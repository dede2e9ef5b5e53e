"""Readers of container formats (RecordIO, TFRecord, LMDB, webdataset, COCO), turned into readers of JPEG files.

The lab measures decoding, so it does not matter how the encoded images were packed, as long as the graph takes no more
from the container than the images and a class number that stays beside them. Held-out images have nothing else.
"""

from collections.abc import Iterable

from . import model, wire
from .model import Argument, Edge, Graph, GraphRefused, Operator
from .operators import FILE_READER

# What means the same to every reader of DALI. `edit.repoint` drops and reports those about shards.
_COMMON = frozenset({
    "device", "dont_use_mmap", "initial_fill", "lazy_init", "num_shards", "pad_last_batch", "prefetch_queue_depth",
    "preserve", "preserve_name", "random_shuffle", "read_ahead", "seed", "shard_id", "shuffle_after_epoch",
    "shuffle_after_epoch_seed", "skip_cached_images", "stick_to_shard", "tensor_init_bytes",
})  # fmt: skip
_LABEL_EXTENSIONS = frozenset({"class", "cls", "cls2", "count", "id", "index", "inx", "label", "labels", "target"})
"""Components of a webdataset sample that hold one number, as its own decoder takes them, and two plain words."""
_INT64_FEATURE = 0
_ARGUMENT_INPUT, _OUTPUT_DTYPE, _OUTPUT_NDIM = 3, 5, 6
"""Field numbers of `InputOutput`."""


def outputs(graph: Graph, reader: Operator) -> tuple[int, int | None]:
    """Which output of a container's reader holds the encoded images, and which one the labels, if that is used.

    Raises:
        GraphRefused: `reader_outputs`, when the graph decodes none or several of them, or uses another one, or when
            labels steer what happens to the images.
    """
    title = reader.row.title
    decoded = _decoded(graph)
    images = [index for index, edge in enumerate(reader.outputs) if edge.name in decoded]
    if len(images) != 1:
        seen = f"{len(images)} of its outputs are" if images else "none of its outputs is"
        raise GraphRefused(
            "reader_outputs",
            f"The graph reads a container with fn.{title}, but {seen} decoded as an image, so it cannot be pointed at "
            "other images. Decode one encoded image per sample.",
        )
    used = _used(graph)
    others = [i for i, edge in enumerate(reader.outputs) if edge.name in used and i != images[0]]
    surplus = [index for index in others if not _is_label(reader, index)] or others[1:]
    if surplus:
        raise GraphRefused(
            "reader_outputs",
            f"The graph uses {_named(reader, surplus[0])} of fn.{title} beside the encoded image and one class number; "
            "the held-out images have no such thing. Leave it out of the pipeline that you benchmark.",
        )
    label = others[0] if others else None
    if label is not None and _meet(graph, reader.outputs[images[0]].name, reader.outputs[label].name):
        raise GraphRefused(
            "reader_outputs",
            f"What {_named(reader, label)} of fn.{title} says changes what happens to the images; the held-out images "
            "have no such number. Only pass it on as a label.",
        )
    return images[0], label


def beside(graph: Graph, reader: Operator) -> set[str]:
    """Names of the outputs of a container's reader that hold neither encoded images nor one class number."""
    decoded = _decoded(graph)
    return {
        edge.name
        for index, edge in enumerate(reader.outputs)
        if edge.name not in decoded and not _is_label(reader, index)
    }


def to_file_reader(graph: Graph, reader: Operator) -> None:
    """Turns a container's reader into `readers.file` in place, with its shuffling and queue.

    The consumers stay as they are, since the edges keep their names. Labels become `int32 [1]`, whatever they were, so
    an output that declares another type for them loses that declaration.

    Raises:
        GraphRefused: see `outputs`.
    """
    image, label = outputs(graph, reader)
    names = [reader.outputs[image].name]
    names.append(reader.outputs[label].name if label is not None else _fresh(graph, f"{names[0]} label"))
    reader.name = FILE_READER
    reader.outputs = [Edge(name, "cpu", [wire.Field(_ARGUMENT_INPUT, wire.VARINT, 0)]) for name in names]
    reader.arguments = kept(reader)
    for edge in graph.outputs:
        if edge.name in names:
            edge.rest = [part for part in edge.rest if part.number not in (_OUTPUT_DTYPE, _OUTPUT_NDIM)]


def kept(reader: Operator) -> list[Argument]:
    """The arguments of a container's reader that `readers.file` takes over."""
    return [a for a in reader.arguments if a.name in _COMMON or a.name.startswith("_origin_stack")]


def _decoded(graph: Graph) -> set[str]:
    """Names of all edges whose content some decoder takes for an encoded image."""
    names: set[str] = set()
    for operator in reversed(graph.operators):
        if operator.row.role == "decoder":
            names |= {edge.name for edge in operator.inputs[:1]}
        elif operator.row.passes and names & {edge.name for edge in operator.outputs}:
            names |= {edge.name for edge in operator.inputs if not edge.steers}
    return names


def _used(graph: Graph) -> set[str]:
    inputs = {edge.name for operator in graph.operators for edge in operator.inputs}
    return inputs | {edge.name for edge in graph.outputs}


def _meet(graph: Graph, one: str, other: str) -> bool:
    """Whether some operator works on both edges, or on what was made of them."""
    return bool(_reached(graph, one) & _reached(graph, other))


def _reached(graph: Graph, start: str) -> set[str]:
    names, reached = {start}, set()
    for operator in graph.operators:
        if names & {edge.name for edge in operator.inputs}:
            made = {edge.name for edge in operator.outputs}
            names |= made
            reached |= made
    return reached


def _is_label(reader: Operator, index: int) -> bool:
    """Whether this output, which is not the image, holds one class number per sample."""
    where = reader.row.label
    if where in ("second", "second_if_single"):
        return index == 1 and (where == "second" or reader.scalar("label_type") in (None, 0))
    if where == "by_extension":
        return set(_texts(reader, "ext")[index : index + 1]) <= _LABEL_EXTENSIONS
    if where == "by_feature":
        features = _features(reader)
        return index < len(features) and features[index]
    return where == "others"


def _named(reader: Operator, index: int) -> str:
    names = _texts(reader, reader.row.named_by) if reader.row.named_by else []
    return f"'{names[index][:100]}'" if index < len(names) else f"output {index + 1}"


def _texts(reader: Operator, name: str) -> list[str]:
    argument = reader.get(name)
    return [str(value) for value in argument.values] if argument else []


def _features(reader: Operator) -> list[bool]:
    """Of each TFRecord feature, whether it is one integer."""
    argument = reader.get("features")
    if argument is None or argument.unread is None:
        return []
    return [_one_integer(element) for element in _elements(argument.unread)]


def _one_integer(feature: bytes) -> bool:
    parts = {part.name: part.values for part in map(model._read_argument, _elements(feature))}
    fixed = parts.get("has_shape") == [True] and parts.get("shape", []) in ([], [1])
    return fixed and parts.get("type") == [_INT64_FEATURE]


def _elements(data: bytes) -> Iterable[bytes]:
    return [part.value for part in wire.parse(data) if part.number == 7 and isinstance(part.value, bytes)]


def _fresh(graph: Graph, wanted: str) -> str:
    taken = {edge.name for operator in graph.operators for edge in (*operator.inputs, *operator.outputs)}
    while wanted in taken:
        wanted += "_"
    return wanted
