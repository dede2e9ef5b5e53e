"""Edits of a learner's graph: allow-list, re-point the reader, strip caches, clamp sizes, and turn it to the CPU."""

from dataclasses import dataclass

from . import containers, model
from .allowed import ALLOWED, CONTAINERS, DECODERS, READERS, WHY, GraphRefused
from .model import Graph, Operator

__all__ = ["ALLOWED", "DECODERS", "READERS", "Budget", "GraphRefused", "check", "cpu_twin", "random_operators",
           "repoint", "restrain", "to_cpu"]  # fmt: skip

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


@dataclass(frozen=True)
class Budget:
    """What the clean room allows."""

    threads: int
    """Cores of the pod's CPU set; more DALI threads than that would not be the same quota for every arm."""


def check(graph: Graph) -> None:
    """Refuses a graph with an operator outside the allow-list, without exactly readable input, or of absurd size.

    Raises:
        GraphRefused: with the reason and what to change.
    """
    for operator in graph.operators:
        if operator.name in CONTAINERS:
            containers.outputs(graph, operator)
        elif operator.name not in ALLOWED:
            why = WHY.get(operator.name)
            if why is None and operator.name.startswith(("readers__", "experimental__readers__")):
                why = f"{operator.name.rpartition('__')[2]} reads a container format, not the JPEG files themselves"
            raise GraphRefused(
                "operator_not_allowed",
                f"Operator {operator.name} cannot be re-run on other images"
                + (f": {why}." if why else ": it is not among the native image operators that the grader allows."),
            )
        arguments = containers.kept(operator) if operator.name in CONTAINERS else operator.arguments
        names = {argument.name for argument in arguments}
        if len(names) < len(arguments) or any(argument.unread is not None for argument in arguments):
            # DALI writes neither; which of two values counts must not be a matter of who reads them.
            raise GraphRefused(
                "unreadable_graph", f"Operator {operator.name} has an argument that DALI does not write."
            )
    if not any(operator.name in READERS or operator.name in CONTAINERS for operator in graph.operators):
        raise GraphRefused("no_reader", "The graph has no fn.readers.file, so it cannot be pointed at other images.")
    if not any(operator.name in DECODERS for operator in graph.operators):
        raise GraphRefused("no_decoder", "The graph decodes no images: there is no fn.decoders.image* in it.")
    if not 1 <= graph.batch_size <= MAX_BATCH:
        raise GraphRefused("batch_size", f"The pipeline's batch size is {graph.batch_size}; expected 1 to {MAX_BATCH}.")


def repoint(graph: Graph, files: list[str], labels: list[int]) -> list[str]:
    """Makes every reader read exactly these files, unsharded; returns what was changed, for the record.

    A container's reader becomes `readers.file`.

    Raises:
        GraphRefused: the graph takes more from a container than images and labels; `check` says so before.
    """
    changed: list[str] = []
    for reader in graph.operators:
        if reader.name in CONTAINERS:
            changed.append(f"{CONTAINERS[reader.name]} replaced by readers.file on {len(files)} held-out images")
            containers.to_file_reader(graph, reader)
        elif reader.name in READERS:
            was = [name for name in ("file_root", "files", "file_list") if reader.get(name)]
            changed.append(f"reader {', '.join(was) or 'source'} replaced by {len(files)} held-out images")
        else:
            continue
        shards = reader.scalar("num_shards")
        if isinstance(shards, int) and shards > 1:
            changed.append(f"shard {reader.scalar('shard_id') or 0} of {shards} replaced by the whole set")
        reader.drop(*_SOURCES, "num_shards", "shard_id", "stick_to_shard", "pad_last_batch")
        if reader.drop("skip_cached_images"):
            changed.append("skip_cached_images removed")
        reader.put(model.texts("files", files))
        reader.put(model.integers("labels", labels))
        changed += _clamp(reader, "initial_fill", MAX_FILL)
        changed += _clamp(reader, "prefetch_queue_depth", MAX_DEPTH)
        changed += _clamp(reader, "tensor_init_bytes", 64 << 20)
    return changed


def restrain(graph: Graph, budget: Budget) -> list[str]:
    """Strips decoder caches and clamps threads, queue depths and memory hints; returns what was changed."""
    changed: list[str] = []
    for operator in graph.operators:
        if operator.name in DECODERS:
            gone = operator.drop(*_CACHE, "memory_stats")
            if any(name.startswith("cache") for name in gone):
                changed.append(f"decoder cache of {operator.instance or operator.name} removed")
            for name in _PADDING:
                changed += _clamp(operator, name, MAX_PADDING)
            for name in ("preallocate_width_hint", "preallocate_height_hint"):
                changed += _clamp(operator, name, 8192)
        changed += _clamp(operator, "bytes_per_sample_hint", MAX_PADDING)
    threads = min(max(graph.num_threads, 1), max(budget.threads, 1))
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
            operator.put(model.text("device", "cpu"))
    graph.device_id = None


def cpu_twin(data: bytes) -> bytes:
    """The serialized graph with everything on the CPU backend."""
    graph = model.read(data)
    to_cpu(graph)
    return model.write(graph)


def random_operators(graph: Graph) -> list[str]:
    """Names of the operators that make augmentation random, in order."""
    chosen = ("Random", "random__", "CoinFlip", "Uniform", "NormalDistribution", "Jitter", "noise__", "GridMask")
    return [op.name for op in graph.operators if op.name.startswith(chosen) or "RandomCrop" in op.name]


def _clamp(operator: Operator, name: str, most: int) -> list[str]:
    argument = operator.get(name)
    values = argument.values if argument else []
    if argument is None or not any(isinstance(value, int) and value > most for value in values):
        return []
    argument.values = [min(value, most) if isinstance(value, int) else value for value in values]
    return [f"{name} {', '.join(map(str, values[:4]))} clamped to {most}"]
