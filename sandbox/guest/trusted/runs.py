"""Runs a graph on chosen files and keeps of each image what is needed to say whether another run gave the same."""

import copy
import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..graph import flow, model
from ..graph.model import Graph
from ..graph.operators import READERS

_KEPT, _VALUES = 64, 8192
"""Images of a batch that can be compared otherwise than to the bit, and about how many of their values."""
_EXPLAINED = 0.1
"""Share of an image's own contrast by which two decoders' versions of it may differ."""

Build = Callable[[Graph], Any]


class Seen(NamedTuple):
    """One sample of one output."""

    shape: tuple[int, ...]
    digest: bytes
    thinned: Any = None
    """Some of an image's values as a float32 vector; None where they were not kept."""


Outputs = list[list[Seen]]
"""Every sample of every output, in order."""


class Runs:
    """Runs versions of one graph, all with the same seeds and labels.

    Args:
        build: makes a pipeline of a graph.
        labels: of the files of a run, by their place; a longer run begins anew with them.
    """

    def __init__(self, build: Build, labels: Sequence[int]) -> None:
        self._build = build
        self._labels = labels

    def run(self, graph: Graph, files: Sequence[str], inner: Sequence[str] = ()) -> Outputs:
        """What the graph makes of these files, in their order, whole batches of them.

        Args:
            graph: from `still`.
            files: a multiple of the batch size.
            inner: names of edges inside the graph that are given out as well.
        """
        ready = copy.deepcopy(graph)
        for reader in ready.operators:
            if reader.name in READERS:
                reader.put(model.texts("files", list(files)))
                labels = [self._labels[place % len(self._labels)] for place in range(len(files))]
                reader.put(model.integers("labels", labels))
        made = {edge.name: edge for operator in ready.operators for edge in operator.outputs}
        ready.outputs += [made[name] for name in inner]
        pipe = self._build(ready)
        found: Outputs = [[] for _ in ready.outputs]
        for _ in range(len(files) // graph.batch_size):
            for place, output in enumerate(pipe.run()):
                batch = output.as_cpu() if hasattr(output, "as_cpu") else output
                found[place] += [_seen(batch.at(n), keep=place == 0 and n < _KEPT) for n in range(len(batch))]
        return found


def still(graph: Graph, output: int, draw: random.Random) -> Graph:
    """A copy with one output, which reads files in their order, makes no batch ahead and has seeds of ours."""
    ready = copy.deepcopy(graph)
    ready.outputs = [ready.outputs[output]]
    flow.drop_idle(ready)
    for reader in ready.operators:
        if reader.name in READERS:
            reader.drop("shuffle_after_epoch")
            reader.put(model.flag("random_shuffle", value=False))
    ready.prefetch = (1, 1)
    reseed(ready, draw)
    return ready


def reseed(graph: Graph, draw: random.Random) -> None:
    """Gives every operator that takes a seed one that its author does not know."""
    from nvidia.dali import backend

    for operator in graph.operators:
        schema = backend.TryGetSchema(operator.name)  # type: ignore[attr-defined]
        if schema is not None and schema.HasArgument("seed"):
            operator.put(model.integer("seed", draw.randrange(1 << 31)))


def alike(one: Seen, other: Seen) -> bool:
    """Equal, or as like as two decodes of a file are; what was not kept counts only when it is equal."""
    if one.digest == other.digest:
        return True
    if one.thinned is None or other.thinned is None or one.shape != other.shape:
        return False
    difference, contrast = one.thinned - other.thinned, float(other.thinned.std())
    return bool(float((difference**2).mean()) ** 0.5 <= _EXPLAINED * contrast)


def _seen(sample: Any, *, keep: bool) -> Seen:
    import numpy as np

    values = np.asarray(sample)
    thinned = None
    if keep:
        flat = values.reshape(-1)
        thinned = np.nan_to_num(flat[:: max(1, flat.size // _VALUES)].astype(np.float32))
    return Seen(tuple(values.shape), hashlib.blake2b(values.tobytes(), digest_size=16).digest(), thinned)
