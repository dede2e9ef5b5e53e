"""Experiments begin beside the first batch of a graph, and the batch has the last word on what they are about."""

import pytest

pytestmark = pytest.mark.integration


def seen(held_out, *names):
    """What is found of graphs that come one after the other, as in a clean room; the reason where one is refused."""
    from nvidia.dali import fn, pipeline_def

    from sandbox.guest.graph.edit import GraphRefused
    from sandbox.guest.trusted import clean_room
    from sandbox.guest.trusted.children import WithoutGpu

    def decoded():
        encoded, label = fn.readers.file(files=["/any.jpg"], name="Reader")
        return fn.decoders.image(encoded, device="cpu"), label

    def plain():
        images, label = decoded()
        return fn.resize(images, size=(32, 32)), label

    def means_first():
        images, _ = decoded()
        return fn.reductions.mean(images, axes=(0, 1)), fn.resize(images, size=(32, 32))

    def ragged():
        images, _ = decoded()
        return fn.resize(images, resize_x=fn.random.uniform(range=[20.0, 60.0]))

    cpu, found = WithoutGpu(), []
    for name in names:
        graph = pipeline_def(locals()[name])(batch_size=4, num_threads=1, device_id=None)
        request = {"blob": graph.serialize(), "files": held_out, "threads": 1, "device": "cpu", "experiments": True}
        try:
            prepared, _ = clean_room.prepare(request, cpu)
        except GraphRefused as refusal:
            found.append(refusal.reason)
        else:
            result = prepared.examination.result(prepared.batch)
            found.append([prepared.batch["output"], result["found"]["doubt"], result["found"]["alike"]])
    return found


def test_the_output_with_the_images_is_examined(lab_child, held_out):
    """Also where a decoder leads to another one first: what was begun for that is dropped."""
    assert lab_child(lambda: seen(held_out, "plain", "means_first")) == [[0, "", 48], [1, "", 48]]


def test_a_refused_graph_leaves_the_next_one_its_experiments(lab_child, held_out):
    """The process that runs them has still the first one's to end."""
    assert lab_child(lambda: seen(held_out, "ragged", "plain")) == ["ragged_batch", [0, "", 48]]
