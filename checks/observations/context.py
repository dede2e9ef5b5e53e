"""What else is known about a submission beside its timing: enough to explain a rate, never to decide one."""

import math
import re

from grader_service.model.base import Count, Shape, ShortText, Wire
from grader_service.model.discovery import LoaderFacts
from grader_service.model.evidence import BatchFacts, Evidence, GraphFacts
from grader_service.model.measurement import Arm, Measurement

_LOADER_NOTE = re.compile(r"^(?P<name>.*): held-out images [a-z]+, batch \[(?P<shape>\d+(?:, \d+)*)\]$", re.DOTALL)
"""The note that a run leaves at the learner's arm when its loader was timed."""


class Context(Wire):
    """What a run found around the timing; the loader is a claim, graph and batch are facts."""

    dataset_images: Count = 0
    """Images of the learner's own set; 0 when it was not scanned and its loader says nothing."""
    loader: LoaderFacts | None = None
    """The learner's loader that was timed, or else the only one there is."""
    loader_shape: Shape | None = None
    """Shape of the images that this loader delivered."""
    graph: GraphFacts | None = None
    batch: BatchFacts | None = None
    dali_batch_size: Count = 0
    """Of the learner's graph; 0 when it was not read."""
    last_batch: ShortText = ""
    """Policy of the iterator over this graph, a claim: `FILL`, `PARTIAL` or `DROP`; empty when it is not known."""

    def epoch_batches(self, batch_size: int | None) -> int:
        """Batches of one epoch over the learner's own set, the last one perhaps not full; 0 when that is not known."""
        return math.ceil(self.dataset_images / batch_size) if batch_size else 0


def context_of(evidence: Evidence) -> Context:
    """Collects what the causes look at from the evidence of a run."""
    discovery, scan, room = evidence.discovery, evidence.scan, evidence.clean_room
    loaders, pipelines = (discovery.loaders, discovery.pipelines) if discovery is not None else ((), ())
    graph, batch, carried = (room.graph, room.batch, room.pipeline) if room is not None else (None, None, "")
    name, shape = _timed_loader(evidence.measurement)
    loader = next((one for one in loaders if one.name == name), loaders[0] if len(loaders) == 1 else None)
    images = scan.distinct if scan is not None and scan.problem is None else 0
    return Context(
        dataset_images=images or (loader.dataset_length or 0 if loader is not None else 0),
        loader=loader,
        loader_shape=shape,
        graph=graph,
        batch=batch,
        dali_batch_size=graph.declared_batch_size if graph is not None else 0,
        last_batch=next((one.last_batch for one in pipelines if one.name == carried), ""),
    )


def _timed_loader(measurement: Measurement | None) -> tuple[str, tuple[int, ...] | None]:
    for arm in measurement.arms if measurement is not None else ():
        for note in arm.notes if arm.arm is Arm.LEARNER else ():
            if (found := _LOADER_NOTE.match(note)) is not None:
                return found["name"], tuple(int(side[:12]) for side in found["shape"].split(", "))[:16]
    return "", None
