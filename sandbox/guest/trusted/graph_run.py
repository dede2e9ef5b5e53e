"""Runs a learner's graph on images that a probe chose, and gives back what came out as numpy arrays."""

import os
import re
from dataclasses import dataclass
from typing import Any

from ..graph import edit, model
from ..graph.model import Graph, GraphRefused
from ..graph.wire import WireError
from ..probes.running import GraphProblem, NoGraph
from .batches import Batches, build

_FLAGS = ("pad_last_batch", "stick_to_shard", "random_shuffle", "shuffle_after_epoch")
_NUMBERS = ("shard_id", "num_shards", "initial_fill", "seed")
_FOLDERS = re.compile(r"(?:/[^/\s\"']+)+/([^/\s\"']+)")
"""Of files in a message: where a pod has them is nobody's business."""
MAX_VALUES = 1 << 28
"""Array elements that one run may keep: 1 GiB of floats."""


@dataclass(frozen=True)
class Run:
    """What came out, batch by batch."""

    batches: list[list[Any]]
    """Per batch, one entry per output: an array [N, ...], or a list of N arrays where their shapes differ."""
    layouts: list[str]
    """Per output, DALI's layout of one sample, such as `HWC`; empty where there is none."""
    dtypes: list[str]
    """Per output, DALI's name of the type, such as `uint8` or `float`."""
    devices: list[str]
    """Per output, `gpu` or `cpu`, as the learner's graph places it."""

    def output(self, index: int) -> list[Any]:
        """All samples of one output, in order."""
        return [sample for batch in self.batches for sample in batch[index]]


def run_graph(
    data: bytes,
    files: list[str],
    labels: list[int],
    *,
    device: str,
    threads: int,
    batches: int,
    batch_size: int | None,
    reader: dict[str, int | bool],
) -> Run:
    """Points the graph's readers at these files and draws batches.

    Args:
        labels: one per file; an output of labels gives them back.
        device: `cuda`, or `cpu` for a rehearsal.
        threads: CPU threads of DALI at most.
        batch_size: another batch size than the graph's own; its own if absent.
        reader: arguments of the file reader to set, of those named in this module; all others keep the graph's value,
            except that the set is not sharded.

    Raises:
        NoGraph: the graph may not be carried.
        GraphProblem: it stopped on these files, or delivers more than one run may keep.
        ValueError: the caller's: a file that is not there, or a reader argument that may not be set.
    """
    absent = next((file for file in files if not os.path.isfile(file)), None)
    if absent is not None:
        raise ValueError(f"there is no file {os.path.basename(absent)}")
    graph = _pointed(data, files, labels, reader, device)
    edit.restrain(graph, threads)
    if batch_size is not None:
        graph.batch_size = batch_size
    devices = [edge.device for edge in graph.outputs]
    if device == "cpu":
        edit.to_cpu(graph)
    else:
        graph.device_id = 0
    kept: list[list[Any]] = []
    facts: list[tuple[str, str]] = []
    try:
        pipe = Batches(build(graph), graph.batch_size, device)
        for _ in range(batches):
            pipe.take(lambda outputs: _keep(outputs, kept, facts))
    except GraphProblem:
        raise
    except Exception as error:
        raise GraphProblem(_FOLDERS.sub(r"\1", str(error))[:3000]) from error
    return Run(kept, [layout for layout, _ in facts], [dtype for _, dtype in facts], devices)


def reader_facts(graph: Graph) -> list[dict[str, Any]]:
    """Arguments of every reader that decide order, padding and shards, as the learner set them."""
    readers = [operator for operator in graph.operators if operator.row.reads and not operator.row.old]
    return [
        {"operator": reader.name, "name": reader.instance[:100]}
        | {name: reader.scalar(name) for name in (*_FLAGS, *_NUMBERS) if reader.get(name) is not None}
        for reader in readers
    ]


def _pointed(data: bytes, files: list[str], labels: list[int], reader: dict[str, int | bool], device: str) -> Graph:
    unknown = sorted(set(reader) - {*_FLAGS, *_NUMBERS})
    if unknown:
        raise ValueError(f"no reader argument that a probe may set: {', '.join(unknown)}")
    try:
        graph = model.read(data)
        edit.check(graph)
        if device == "cpu":
            edit.require_cpu(graph)
        # The learner's own order, also of several readers: whether theirs fit together is what a probe may look at.
        own = {name: kept for name in _FLAGS if (kept := _flag(graph, name)) is not None}
        edit.repoint(graph, files, labels)
    except GraphRefused as refusal:
        raise NoGraph(str(refusal)) from refusal
    except WireError as error:
        raise GraphProblem(f"The serialized graph is broken: {error}") from error
    for operator in graph.operators:
        if operator.row.role == "reader":
            for name, value in {**own, **reader}.items():
                operator.put(model.argument(name, bool(value) if name in _FLAGS else int(value)))
    return graph


def _flag(graph: Graph, name: str) -> bool | None:
    """A reader's flag as the learner set it; None where it was left alone."""
    for operator in graph.operators:
        if operator.row.reads and not operator.row.old and (argument := operator.get(name)) is not None:
            return bool(argument.scalar)
    return None


def _keep(outputs: Any, kept: list[list[Any]], facts: list[tuple[str, str]]) -> None:
    batch: list[Any] = []
    for output in outputs:
        host = output.as_cpu() if "GPU" in type(output).__name__ else output
        if host.is_dense_tensor():
            batch.append(_copy(host.as_tensor()))
        else:
            batch.append([_copy(host[index]) for index in range(len(host))])
        if len(facts) < len(outputs):
            facts.append((str(host.layout()), str(host.dtype).rpartition(".")[2].lower()))
    kept.append(batch)
    if _values(kept) > MAX_VALUES:
        raise GraphProblem(f"its batches hold more than {MAX_VALUES} values")


def _copy(tensor: Any) -> Any:
    import numpy as np

    return np.array(tensor)  # the buffer goes back to DALI


def _values(batches: list[list[Any]]) -> int:
    total = 0
    for batch in batches:
        for output in batch:
            total += sum(sample.size for sample in output) if isinstance(output, list) else output.size
    return total
