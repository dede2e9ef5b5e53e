"""What the clean room makes of a graph in a rehearsal, and what comes out of it."""

from collections.abc import Callable

import pytest

from sandbox.guest.graph import edit, model
from sandbox.guest.graph.edit import GraphRefused
from sandbox.guest.graph.model import Graph


def changed(data: bytes, files: list[str]) -> tuple[bytes, list[str]]:
    """The graph with these files, labelled from 100 on, on the CPU; and what is said about that."""
    graph = model.read(data)
    assert edit.prune(graph) == []
    edit.check(graph)
    said = edit.repoint(graph, files, list(range(100, 100 + len(files))))
    said += edit.restrain(graph, 2)
    edit.to_cpu(graph)
    return model.write(graph), said


def edited(data: bytes, files: list[str]) -> bytes:
    """The graph alone."""
    return changed(data, files)[0]


def refused(graph: Graph, words: str | None = None, by: Callable[[Graph], object] = edit.check) -> str:
    """The reason for which a graph is refused, in a message with these words."""
    with pytest.raises(GraphRefused, match=words) as refusal:
        by(graph)
    return refusal.value.reason


def draw(data: bytes, *, separated: bool = False):
    """Runs a graph; for use in a child, which alone may import DALI."""
    from tests.sandbox.guest import pipelines

    return pipelines.draw(data, separated=separated)
