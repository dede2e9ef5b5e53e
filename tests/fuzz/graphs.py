"""A learner's serialized DALI graph, through every step that the clean room takes before DALI sees it."""

from sandbox.guest.graph import edit, flow, model, neutral, view
from sandbox.guest.trusted.clean_room import _graph_facts

FILES = [f"/shards/{number:05d}.jpg" for number in range(8)]


def graph(data: bytes) -> object:
    """Read, pruned, checked, re-pointed, restrained, turned to the CPU, written, and read again."""
    found = model.read(data)
    model.write(found)
    _graph_facts(found)
    changed = edit.prune(found)
    edit.check(found)
    changed += edit.repoint(found, FILES, list(range(len(FILES))))
    changed += edit.restrain(found, 2)
    edit.to_cpu(found)
    written = model.write(found)
    sizes = {edge.name: (20.0, 30.0) for operator in found.operators for edge in operator.outputs}
    for output in range(min(len(found.outputs), 4)):
        flow.doubt(found, output)
        for places in neutral.workers(found, output).values():
            model.write(neutral.without(found, places))
        view.steps(found, output, sizes)
    again = model.read(written)
    assert model.write(again) == written
    return changed
