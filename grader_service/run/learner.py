"""The learner's pod: runs the submission, hears what it left behind, and keeps the pod for its PyTorch arm."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from grader_service.errors import SandboxUnavailable
from grader_service.ingest.artifact import Prepared
from grader_service.model.base import Device, Wire
from grader_service.model.discovery import Discovery, GraphRef
from grader_service.model.lab import PodLimits
from grader_service.run.dialogue import Stopped, ask, hear, parse
from sandbox.api import GuestPaths, Pod

START_S = 120.0
"""For copying the submission's files into the workspace."""
STOP_S = 20.0
"""Beyond the learner's own time, for the soft stop."""
COLLECT_S = 60.0
"""For reading the namespace, however the learner's own objects answer."""


class Started(Wire):
    """The learner's first line is about to run."""

    kind: Literal["started"]


class Ran(Wire):
    """The learner's code has ended, or was stopped."""

    kind: Literal["ran"]


class Discovered(Wire):
    """What the learner's code left behind; see `Discovery`."""

    kind: Literal["discovered"]
    discovery: Discovery
    graph_sizes: Annotated[tuple[int, ...], Field(max_length=16, fail_fast=True)]


@dataclass(frozen=True)
class Found:
    """A discovery and the graphs that came with it, checked against each other."""

    discovery: Discovery
    graphs: tuple[bytes, ...]


def discover(
    pod: Pod,
    prepared: Prepared,
    paths: GuestPaths,
    limits: PodLimits,
    device: Device,
    meanwhile: Callable[[], None] | None = None,
) -> Found | Stopped:
    """Runs the submission once, top to bottom.

    Args:
        device: `cpu` in a rehearsal.
        meanwhile: is called once the pod knows what to run.

    Returns:
        What it left behind, or how the pod ended without saying so.

    Raises:
        SandboxUnavailable: the pod ended before the first line of the submission, while only code of ours ran in it.
    """
    cells = None
    if prepared.cells is not None:
        cells = [{"number": number, "source": source} for number, source in prepared.cells]
    request = {
        "kind": "discover",
        "device": device,
        "submission": paths.submission,
        "workspace": paths.workspace,
        "tmp": paths.tmp,
        "entry": prepared.entry,
        "cells": cells,
        "timeout_s": limits.learner_timeout_s,
        "stall_s": limits.learner_stall_s,
    }
    message = ask(pod, request, timeout_s=START_S, meanwhile=meanwhile)
    started = parse(pod, message, Started)
    if isinstance(started, Stopped):
        record = pod.end()
        said = record.log_tail.strip().splitlines()[-1:] or [record.detail]
        raise SandboxUnavailable(f"a learner's pod ended before the submission ran: {started.ending.value}, {said[0]}")
    message = hear(pod, limits.learner_timeout_s + STOP_S)
    if isinstance(ran := parse(pod, message, Ran), Stopped):
        return ran
    message = hear(pod, COLLECT_S)
    if isinstance(message, Stopped):
        return message
    answer = parse(pod, message, Discovered)
    return answer if isinstance(answer, Stopped) else _checked(pod, answer, message.blob)


def _checked(pod: Pod, answer: Discovered, blob: bytes) -> Found | Stopped:
    if any(size < 0 for size in answer.graph_sizes) or sum(answer.graph_sizes) != len(blob):
        return Stopped(pod.reject("graph sizes do not add up to the bytes that came"))
    graphs = []
    start = 0
    for size in answer.graph_sizes:
        graphs.append(blob[start : start + size])
        start += size
    if any(p.graph is not None and p.graph >= len(graphs) for p in answer.discovery.pipelines):
        return Stopped(pod.reject("a pipeline names a graph that did not come"))
    refs = tuple(GraphRef(sha256=hashlib.sha256(graph).hexdigest(), size_bytes=len(graph)) for graph in graphs)
    return Found(answer.discovery.model_copy(update={"graphs": refs}), tuple(graphs))
