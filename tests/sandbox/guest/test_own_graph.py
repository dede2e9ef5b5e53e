"""Our own DALI graph does the reference loader's job: same size, type and layout, from the held-out files only."""

import itertools

import pytest

from sandbox.guest.graph import model
from sandbox.guest.trusted import own_graph, reference_plan

pytestmark = pytest.mark.integration

RANDOM = {"op": "random_resized_crop", "area": [0.08, 1.0], "ratio": [0.75, 1.33]}
JOBS = (
    [RANDOM],
    [{"op": "resize", "size": [40]}, {"op": "crop", "size": [32, 24]}],
    [{"op": "resize", "size": [40, 40]}, {"op": "crop", "size": [32, 24]}],
    [{"op": "resize", "size": [20, 20]}, {"op": "crop", "size": [32, 24]}],
    [{"op": "crop", "size": [32, 20]}],
    [{"op": "crop", "size": [999, 999]}],
    [],
)


def a_plan(**changes):
    plan = {
        "steps": [RANDOM],
        "interpolation": "bilinear",
        "size": [32, 24],
        "mirror": True,
        "colour": False,
        "turn": False,
        "blur": False,
        "floats": True,
        "channels": 3,
        "grey": False,
    }
    return plan | changes


class Heard:
    """A link that keeps what is sent."""

    def __init__(self):
        self.messages = []

    def send(self, kind, blob=b"", **body):
        self.messages.append({"kind": kind, "bytes": len(blob), **body})


def answers(files, *more):
    """What a graph over these files says to being prepared, and to more requests."""
    link = Heard()
    settings = {"batch_size": 4, "threads": 2, "device": "cpu"}
    graph = own_graph.prepare(link, {"kind": "prepare_own", "files": files, "plan": a_plan(), **settings})
    for request in more:
        graph.window(link, request)
    return link.messages


def test_every_job_comes_out_as_asked_for(lab_child, held_out):
    """Each window and size, type, channel count, filter and set of augmentations gives batches of the plan's shape."""

    def shapes():
        found = []
        for steps, floats, channels, extras in itertools.product(JOBS, (True, False), (1, 3), (True, False)):
            plan = a_plan(steps=steps, floats=floats, channels=channels, mirror=extras, colour=extras)
            plan |= {"turn": extras, "blur": extras, "interpolation": "nearest" if extras else "bilinear"}
            images, labels = own_graph.build(held_out, plan, 4, 2, "cpu").run()
            wanted = [4, channels, 32, 24] if floats else [4, 32, 24, channels]
            found.append((wanted, list(images.as_array().shape), str(images.dtype).rpartition(".")[2], len(labels)))
        return found

    for wanted, shape, dtype, labels in lab_child(shapes, timeout=120.0):
        assert shape == wanted
        assert dtype == ("FLOAT" if wanted[1] in (1, 3) else "UINT8")
        assert labels == 4


def test_it_does_the_job_of_a_learners_graph(lab_child, graphs, held_out):
    """Plans of real graphs are built as they come from the clean room."""

    def shapes():
        found = []
        for name in ("lab", "trivial", "conditional", "bytes"):
            plan = reference_plan.plan(model.read(graphs[name]), [3, 32, 24], "FLOAT", 0, work={}, sizes={})
            found.append(list(own_graph.build(held_out, plan, 4, 2, "cpu").run()[0].as_array().shape))
        return found

    assert lab_child(shapes) == [[4, 3, 32, 24]] * 4


def test_it_reads_all_held_out_files(lab_child, held_out):
    """An epoch's labels are those of every file."""

    def labels():
        pipe = own_graph.build(held_out, a_plan(), 3, 2, "cpu")
        return sorted(int(label) for _ in range(2) for label in pipe.run()[1].as_array().ravel())

    assert lab_child(labels) == list(range(6))


def test_it_is_prepared_and_timed_like_any_arm(lab_child, held_out):
    """`prepare_own` is answered with batch and queue depth, a window with its two marks, a true count and its time."""
    window = {"kind": "window", "discard": 2, "batches": 3}
    *messages, done = lab_child(answers, held_out, window)
    prepared = {"kind": "prepared_own", "bytes": 0, "batch_size": 4, "queue_depth": 2}
    assert messages == [prepared, {"kind": "mark", "bytes": 0}]
    assert 0 < done.pop("seconds") < 60
    assert done == {"kind": "window_done", "bytes": 0, "images": 12}


def test_a_job_that_cannot_be_done_is_refused(lab_child, tmp_path):
    """The host hears why, and the clean room goes on."""
    (answer,) = lab_child(answers, [str(tmp_path / "none.jpg")])
    assert (answer["kind"], answer["problem"]) == ("refused", "own_graph_failed")
    assert "none.jpg" in answer["text"]
