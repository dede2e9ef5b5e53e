"""Runs a graph on chosen files and keeps of each image what is needed to say whether another run gave the same."""

import copy
import hashlib
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..graph import flow, model
from ..graph.model import Graph
from .batches import build

_VALUES = 1 << 19
"""Values of a batch that are kept, for comparing images otherwise than to the bit."""
DECODED, WORKED = 0.25, 0.1
"""How far apart an image's versions by two decoders, and by two devices' operators, may be; see `alike`."""


class Seen(NamedTuple):
    """One sample of one output."""

    shape: tuple[int, ...]
    digest: bytes = b""
    """Of all its values; empty where only the shape was asked for."""
    thinned: Any = None
    """Some of an image's values as a float32 vector; None where they were not kept."""


Outputs = list[list[Seen]]
"""Every sample of every output, in order."""


class Runs:
    """Runs versions of one graph, all with the same seeds and labels.

    Args:
        labels: of the files of a run, by their place; a longer run begins anew with them.
        with_gpu: calls a function in the process that has the GPU, where graphs for it run.
    """

    def __init__(self, labels: Sequence[int], with_gpu: Callable[..., Any]) -> None:
        self._labels = labels
        self._with_gpu = with_gpu

    def run(
        self, graph: Graph, files: Sequence[str], windows: Sequence[str] = (), sized: Sequence[str] = ()
    ) -> Outputs:
        """What the graph makes of these files, in their order, whole batches of them.

        Args:
            graph: from `still`.
            files: a multiple of the batch size.
            windows: names of edges inside the graph that are given out as well.
            sized: names of those of which only the shapes are.
        """
        ready = copy.deepcopy(graph)
        for reader in ready.operators:
            if reader.row.role == "reader":
                reader.put(model.argument("files", list(files)))
                labels = [self._labels[place % len(self._labels)] for place in range(len(files))]
                reader.put(model.argument("labels", labels))
        made = {edge.name: edge for operator in ready.operators for edge in operator.outputs}
        ready.outputs += [made[name] for name in (*windows, *sized)]
        job = (ready, len(files) // graph.batch_size, len(graph.outputs) + len(windows))
        return _run(*job) if graph.device_id is None else self._with_gpu(_run, *job)


def _run(graph: Graph, batches: int, whole: int) -> Outputs:
    """Samples of all outputs; of those behind the first `whole` only their shapes."""
    pipe = build(graph)
    found: Outputs = [[] for _ in graph.outputs]
    for _ in range(batches):
        for place, output in enumerate(pipe.run()):
            if place >= whole:
                found[place] += [Seen(tuple(shape)) for shape in output.shape()]
                continue
            batch = output.as_cpu() if hasattr(output, "as_cpu") else output
            found[place] += [_seen(batch.at(n), _VALUES // len(batch)) for n in range(len(batch))]
    return found


def still(graph: Graph, output: int, draw: random.Random) -> Graph:
    """A copy with one output, which reads files in their order, makes no batch ahead and has seeds of ours."""
    ready = copy.deepcopy(graph)
    ready.outputs = [ready.outputs[output]]
    flow.drop_idle(ready)
    for reader in ready.operators:
        if reader.row.role == "reader":
            reader.drop("shuffle_after_epoch")
            reader.put(model.argument("random_shuffle", False))
    ready.prefetch = (1, 1)
    reseed(ready, draw)
    return ready


def reseed(graph: Graph, draw: random.Random) -> None:
    """Gives every operator that takes a seed one that its author does not know."""
    from nvidia.dali import backend

    for operator in graph.operators:
        schema = backend.TryGetSchema(operator.name)  # type: ignore[attr-defined]
        if schema is not None and schema.HasArgument("seed"):
            operator.put(model.argument("seed", draw.randrange(1 << 31)))


def alike(one: Outputs, other: Outputs, within: float) -> list[bool]:
    """Of each image whether both runs gave the same one, made of the same windows and by way of the same sizes.

    Args:
        one: outputs of a run, images first.
        other: those of another one.
        within: by how much images may differ, as a share of what each differs from the image before it in its run, and
            windows, as a share of their contrast; 0 for nothing.
    """
    images = other[0]
    return [
        all(a[n].shape == b[n].shape for a, b in zip(one, other, strict=True))
        and _close(one[0][n], images[n], within * _distance(images[n], images[n - 1]))
        and all(_close(a[n], b[n], within * _contrast(b[n])) for a, b in zip(one[1:], other[1:], strict=True))
        for n in range(len(images))
    ]


def _close(one: Seen, other: Seen, limit: float) -> bool:
    return one.digest == other.digest or _distance(one, other) < limit


def _distance(one: Seen, other: Seen) -> float:
    """Root of the mean square of differences; not a number where there is nothing to compare."""
    if one.thinned is None or other.thinned is None or one.shape != other.shape:
        return math.nan
    return math.sqrt(float(((one.thinned - other.thinned) ** 2).mean()))


def _contrast(seen: Seen) -> float:
    """The distance of two images that have nothing in common but their contrast."""
    return math.nan if seen.thinned is None else math.sqrt(2) * float(seen.thinned.std())


def _seen(sample: Any, kept: int) -> Seen:
    import numpy as np

    values = np.asarray(sample)
    flat = values.reshape(-1)
    thinned = np.nan_to_num(flat[:: max(1, flat.size // max(1, kept))].astype(np.float32)) if flat.size else None
    digest = hashlib.sha256(np.ascontiguousarray(values).data).digest()
    return Seen(tuple(values.shape), digest, thinned)
