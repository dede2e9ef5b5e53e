"""Edits of a learner's graph: side branches left out, allow-list, readers re-pointed, caches stripped, sizes clamped.

And everything turned to the CPU, for a rehearsal.
"""

from . import containers, flow, model
from .model import Edge, Graph, GraphRefused, Operator

_SOURCES = (
    "file_root",
    "files",
    "file_list",
    "labels",
    "file_filters",
    "dir_filters",
    "case_sensitive_filter",
)
_CACHE = ("cache_size", "cache_type", "cache_threshold", "cache_debug", "cache_batch_copy")
_ORDER = ("random_shuffle", "shuffle_after_epoch")
_DECODING = ("use_fast_idct", "jpeg_fancy_upsampling")
"""Arguments of a decoder by which two of them tell a JPEG from a picture without loss."""
_PADDING = (
    "device_memory_padding",
    "device_memory_padding_jpeg2k",
    "host_memory_padding",
    "host_memory_padding_jpeg2k",
)
MAX_PADDING = 256 << 20
MAX_BATCH = 4096
MAX_DEPTH = 8
MAX_FILL = 4096


def prune(graph: Graph) -> list[str]:
    """Leaves out what has nothing to do with the images and cannot be carried; returns what, for the record.

    An output of the pipeline goes when it does not descend from a decoder and something that is refused made it, or had
    a say in it: an operator, or what a container holds beside images and class numbers. Then go the operators that feed
    nothing that is left. A graph of which no output descends from a decoder stays as it is, for `check` to refuse.
    """
    images = flow.image_edges(graph)
    if not any(edge.name in images for edge in graph.outputs):
        return []
    origins = _refused_origins(graph)
    kept: list[Edge] = []
    changed: list[str] = []
    for place, edge in enumerate(graph.outputs, 1):
        if edge.name in images or edge.name not in origins:
            kept.append(edge)
        else:
            changed.append(f"output {place} left out: it holds no decoded image, and comes from {origins[edge.name]}")
    graph.outputs = kept
    if idle := flow.drop_idle(graph):
        changed.append(f"operators that feed nothing else left out: {', '.join(idle)}")
    return changed


def _refused_origins(graph: Graph) -> dict[str, str]:
    """Name of each edge that something refused has a say in, and the operator that is the reason."""
    origins: dict[str, str] = {}
    for operator in graph.operators:
        if operator.row.role == "container":
            origins |= dict.fromkeys(containers.beside(graph, operator), operator.name)
            continue
        origin = next((origins[edge.name] for edge in operator.inputs if edge.name in origins), None)
        if operator.row.refused:
            origin = operator.name
        if origin is not None:
            origins |= dict.fromkeys((edge.name for edge in operator.outputs), origin)
    return origins


def check(graph: Graph) -> None:
    """Refuses a graph with an operator outside the allow-list, without exactly readable input, or of absurd size.

    Raises:
        GraphRefused: with the reason and what to change.
    """
    for operator in graph.operators:
        container = operator.row.role == "container"
        if container:
            containers.outputs(graph, operator)
        elif why := operator.row.refused:
            raise GraphRefused(
                "operator_not_allowed", f"Operator {operator.name} cannot be re-run on other images: {why}."
            )
        arguments = containers.kept(operator) if container else operator.arguments
        names = {argument.name for argument in arguments}
        if len(names) < len(arguments) or any(argument.unread is not None for argument in arguments):
            # DALI writes neither; which of two values counts must not be a matter of who reads them.
            raise GraphRefused(
                "unreadable_graph", f"Operator {operator.name} has an argument that DALI does not write."
            )
    if not any(operator.row.role in ("reader", "container") for operator in graph.operators):
        raise GraphRefused("no_reader", "The graph has no fn.readers.file, so it cannot be pointed at other images.")
    if not any(operator.row.role == "decoder" for operator in graph.operators):
        raise GraphRefused("no_decoder", "The graph decodes no images: there is no fn.decoders.image* in it.")
    if not 1 <= graph.batch_size <= MAX_BATCH:
        raise GraphRefused("batch_size", f"The pipeline's batch size is {graph.batch_size}; expected 1 to {MAX_BATCH}.")
    _check_encoded(graph)


def _check_encoded(graph: Graph) -> None:
    """Refuses a graph that does anything with encoded images but decode them, pass them on or read their size.

    Raises:
        GraphRefused: `encoded_images`.
    """
    users: dict[str, list[Operator]] = {}
    for operator in graph.operators:
        for name in {edge.name for edge in operator.inputs}:
            users.setdefault(name, []).append(operator)
    todo = [name for operator in graph.operators for name in _encoded_outputs(graph, operator)]
    seen = set(todo)
    while todo:
        name = todo.pop()
        for operator in users.get(name, ()):
            if not _may_take(operator, name):
                raise GraphRefused(
                    "encoded_images",
                    f"Operator {operator.name[:190]} {_deed(operator, name)}. Encoded images may only be decoded: work "
                    "with what fn.decoders.image* makes of them.",
                )
            if operator.row.passes:
                new = {edge.name for edge in operator.outputs} - seen
                seen |= new
                todo += new


def _encoded_outputs(graph: Graph, reader: Operator) -> list[str]:
    if reader.row.role == "reader":
        return [edge.name for edge in reader.outputs[:1]]
    return [reader.outputs[containers.outputs(graph, reader)[0]].name] if reader.row.role == "container" else []


def _may_take(operator: Operator, name: str) -> bool:
    """Whether an operator may take these encoded images as it does: as its first input, and as nothing else."""
    taken = [place for place, edge in enumerate(operator.inputs) if edge.name == name]
    if taken != [0] or operator.inputs[0].steers:
        return False
    return operator.row.role == "decoder" or operator.row.passes == "always" or operator.row.reads_header


def _deed(operator: Operator, name: str) -> str:
    """What an operator does with encoded images, in words."""
    if operator.row.passes == "by_choice":
        return "chooses by a condition between encoded images, before they are decoded"
    edge = next(edge for edge in operator.inputs if edge.name == name)
    if edge.steers:
        return f"takes the bytes of the encoded images for its argument '{edge.argument[:100]}'"
    return "works on the bytes of the encoded images, before they are decoded"


def require_cpu(graph: Graph) -> None:
    """Refuses a graph for a rehearsal that has an operator without a CPU implementation.

    Raises:
        GraphRefused: `needs_gpu`.
    """
    for operator in graph.operators:
        if operator.row.gpu_only:
            raise GraphRefused(
                "needs_gpu",
                f"Operator {operator.name} has no CPU implementation, so a rehearsal without a GPU cannot run it.",
            )


def repoint(graph: Graph, files: list[str], labels: list[int]) -> list[str]:
    """Makes every reader read exactly these files, unsharded; returns what was changed, for the record.

    A container's reader becomes `readers.file`. Several readers give the same files in the same order, unshuffled: each
    would shuffle in its own way, and it could not be said which file an image is made of.

    Raises:
        GraphRefused: the graph takes more from a container than images and labels; `check` says so before.
    """
    changed: list[str] = []
    readers = [op for op in graph.operators if op.row.role in ("reader", "container")]
    if len(readers) > 1 and any(_asks(reader, *_ORDER) for reader in readers):
        changed.append(f"{len(readers)} readers read the same images in the same order: shuffling turned off")
    for reader in readers:
        if reader.row.role == "container":
            changed.append(f"{reader.row.title} replaced by readers.file on {len(files)} held-out images")
            containers.to_file_reader(graph, reader)
        else:
            was = [name for name in ("file_root", "files", "file_list") if reader.get(name)]
            changed.append(f"reader {', '.join(was) or 'source'} replaced by {len(files)} held-out images")
        shards = reader.scalar("num_shards")
        if isinstance(shards, int) and shards > 1:
            changed.append(f"shard {reader.scalar('shard_id') or 0} of {shards} replaced by the whole set")
        if len(readers) > 1:
            reader.drop(*_ORDER)
            for name in _ORDER:
                reader.put(model.argument(name, False))
        reader.drop(*_SOURCES, "num_shards", "shard_id", "stick_to_shard", "pad_last_batch")
        if reader.drop("skip_cached_images"):
            changed.append("skip_cached_images removed")
        reader.put(model.argument("files", files))
        reader.put(model.argument("labels", labels))
        changed += _clamp(reader, "initial_fill", MAX_FILL)
        changed += _clamp(reader, "prefetch_queue_depth", MAX_DEPTH)
        changed += _clamp(reader, "tensor_init_bytes", 64 << 20)
    return changed


def restrain(graph: Graph, cores: int) -> list[str]:
    """Strips decoder caches and clamps threads, queue depths and memory hints; returns what was changed.

    Args:
        cores: of the pod's CPU set; more DALI threads than that would not be the same quota for every arm.
    """
    changed: list[str] = []
    for operator in graph.operators:
        if operator.row.role == "decoder":
            gone = operator.drop(*_CACHE, "memory_stats")
            if any(name.startswith("cache") for name in gone):
                changed.append(f"decoder cache of {operator.instance or operator.name} removed")
            if gone := operator.drop(*_DECODING):
                changed.append(f"{', '.join(gone)} of {operator.instance or operator.name} removed")
            for name in _PADDING:
                changed += _clamp(operator, name, MAX_PADDING)
            for name in ("preallocate_width_hint", "preallocate_height_hint"):
                changed += _clamp(operator, name, 8192)
        changed += _clamp(operator, "bytes_per_sample_hint", MAX_PADDING)
    threads = min(max(graph.num_threads, 1), max(cores, 1))
    if threads != graph.num_threads:
        changed.append(f"num_threads {graph.num_threads} clamped to {threads}, the cores of every arm")
        graph.num_threads = threads
    depths = (min(max(graph.prefetch[0], 1), MAX_DEPTH), min(max(graph.prefetch[1], 1), MAX_DEPTH))
    if depths != graph.prefetch:
        changed.append(f"prefetch_queue_depth {graph.prefetch} clamped to {depths}")
        graph.prefetch = depths
    return changed


def to_cpu(graph: Graph) -> None:
    """Turns every operator, input and output to the CPU backend, for a rehearsal."""
    for edge in [*graph.inputs, *graph.outputs]:
        edge.device = "cpu"
    for operator in graph.operators:
        for edge in [*operator.inputs, *operator.outputs]:
            edge.device = "cpu"
        if operator.get("device"):
            operator.put(model.argument("device", "cpu"))
    graph.device_id = None


def cpu_twin(data: bytes) -> bytes:
    """The serialized graph with everything on the CPU backend.

    Raises:
        GraphRefused: an operator runs on a GPU only.
    """
    graph = model.read(data)
    require_cpu(graph)
    to_cpu(graph)
    return model.write(graph)


def random_operators(graph: Graph) -> list[str]:
    """Names of the operators that make augmentation random, in order."""
    return [op.name for op in graph.operators if op.row.augments]


def _asks(operator: Operator, *names: str) -> bool:
    """Whether one of these flags is set, in whatever form."""
    return any(any(argument.values) for argument in operator.arguments if argument.name in names)


def _clamp(operator: Operator, name: str, most: int) -> list[str]:
    argument = operator.get(name)
    values = argument.values if argument else []
    if argument is None or not any(isinstance(value, int) and value > most for value in values):
        return []
    argument.values = [min(value, most) if isinstance(value, int) else value for value in values]
    return [f"{name} {', '.join(map(str, values[:4]))} clamped to {most}"]
