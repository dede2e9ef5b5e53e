"""Graphs over container formats run on the held-out JPEGs, when they take images and labels only."""

import pytest

from sandbox.guest.graph import edit, model
from sandbox.guest.graph.model import Argument
from tests.sandbox.guest.editing import changed, draw, edited, refused

pytestmark = [pytest.mark.integration, pytest.mark.slow]

CARRIED = {
    "recordio": "readers.mxnet",
    "sharded recordio": "readers.mxnet",
    "tfrecord": "readers.tfrecord",
    "webdataset": "readers.webdataset",
    "webdataset without labels": "readers.webdataset",
    "caffe": "readers.caffe",
    "caffe2": "readers.caffe2",
    "coco": "readers.coco",
    "mixed readers": "readers.mxnet",
    "declared types": "readers.mxnet",
}
WITHOUT_FILES = ("caffe", "caffe2", "coco")
"""Serialized, but not written here: LMDB needs a library of its own, and COCO annotations."""


@pytest.fixture(scope="session")
def packed(lab_child, jpegs, tmp_path_factory) -> dict[str, bytes]:
    """Serialized graphs over real containers that hold the learner's JPEGs."""
    folder = tmp_path_factory.mktemp("packed")

    def serialize():
        from tests.sandbox.guest import packed

        return packed.corpus(str(jpegs), str(folder))

    return lab_child(serialize)


@pytest.fixture(scope="module")
def drawn(lab_child, packed, held_out):
    """One batch of every edited graph, drawn in one child."""
    made = {name: edited(packed[name], held_out) for name in CARRIED}
    return lab_child(lambda: {name: draw(data) for name, data in made.items()}, timeout=120.0)


def test_the_containers_are_real(lab_child, packed):
    """DALI reads the written containers as they are: 16 images, and the labels that were packed."""
    real = [name for name in CARRIED if name not in WITHOUT_FILES]
    twins = {name: edit.cpu_twin(packed[name]) for name in real}
    outputs = lab_child(lambda: {name: draw(data) for name, data in twins.items()}, timeout=120.0)
    for name in real:
        assert len(outputs[name][0]["shapes"]) == 16
        if len(outputs[name]) > 1:
            assert min(outputs[name][1]["values"]) >= 700


@pytest.mark.parametrize("name", CARRIED)
def test_a_container_is_replaced_by_the_held_out_files(drawn, held_out, name):
    """Every image of the batch comes from a held-out file, and so does every label."""
    images, *rest = drawn[name]
    assert images["shapes"][0][1:] == [32, 32]
    assert len(images["shapes"]) == 16
    sources = {source for output in drawn[name] for source in output["sources"] if source}
    assert sources
    assert sources <= set(held_out)
    for labels in rest:
        assert labels["type"] == "INT32"
        assert set(labels["values"]) <= set(range(100, 106))


@pytest.mark.parametrize("name", CARRIED)
def test_the_replacement_is_said_and_nothing_of_the_container_is_left(packed, held_out, name):
    """The record names the reader and the number of images; no path, index or feature stays in the bytes."""
    data, said = changed(packed[name], held_out)
    assert f"{CARRIED[name]} replaced by readers.file on 6 held-out images" in said
    operators = model.read(data).operators
    arguments = [a for op in operators for a in op.arguments if not a.name.startswith("_origin")]
    left = repr([(argument.name, argument.values) for argument in arguments])
    for word in ("images.", "nowhere", "features", "index_path", "image/encoded", "annotations"):
        assert word not in left
    assert {op.name for op in operators if "ead" in op.name} == {"readers__File"}


def test_shuffling_and_queues_stay_and_shards_go(packed, held_out):
    """What the learner chose about order is kept, clamped as for files; the shard is said to be gone."""
    data, said = changed(packed["sharded recordio"], held_out)
    reader = model.read(data).operators[0]
    assert (reader.instance, reader.scalar("random_shuffle"), reader.scalar("seed")) == ("Reader", True, 11)
    assert "shard 1 of 3 replaced by the whole set" in said
    assert reader.get("pad_last_batch") is None
    data, said = changed(packed["tfrecord"], held_out)
    assert f"initial_fill {1 << 20} clamped to {edit.MAX_FILL}" in said
    assert model.read(data).operators[0].scalar("initial_fill") == edit.MAX_FILL


def test_several_readers_all_read_the_held_out_files(drawn):
    """A container beside plain files: both halves of each image are held-out ones."""
    images, labels = drawn["mixed readers"]
    assert images["shapes"][0] == [6, 32, 32]
    assert set(labels["values"]) == set(range(100, 106))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("webdataset with json", "uses 'json' of fn.readers.webdataset"),
        ("webdataset with two", "uses 'json' of fn.readers.webdataset"),
        ("caffe2 vectors", "uses output 2 of fn.readers.caffe2"),
        ("caffe2 with boxes", "uses output 3 of fn.readers.caffe2"),
        ("coco with boxes", "uses output 2 of fn.readers.coco"),
        ("tfrecord, list", "uses 'image/class/label' of fn.readers.tfrecord"),
        ("tfrecord, text", "uses 'image/class/text' of fn.readers.tfrecord"),
        ("tfrecord, two numbers", "uses 'image/height' of fn.readers.tfrecord"),
        ("tfrecord, second image", "2 of its outputs are decoded"),
        ("tfrecord, no image", "none of its outputs is decoded"),
        ("tfrecord, steered", "changes what happens to the images"),
    ],
)
def test_more_than_images_and_labels_is_refused(packed, held_out, name, words):
    """Held-out images have no boxes, texts or second pictures, and the message names what is too much."""
    for take in (edit.check, lambda graph: edit.repoint(graph, held_out, [0] * 6)):
        assert refused(model.read(packed[name]), words, by=take) == "reader_outputs"


def test_a_container_is_decoded_without_choosing(packed):
    """Encoded images that pass a condition are refused as those of files are, whichever operator decodes them."""
    assert refused(model.read(packed["branch"]), "chooses by a condition") == "encoded_images"


@pytest.mark.parametrize(
    ("name", "operator", "left"),
    [
        ("webdataset with json", "readers__Webdataset", 1),
        ("webdataset with two", "readers__Webdataset", 2),
        ("caffe2 with boxes", "readers__Caffe2", 2),
        ("coco with boxes", "readers__COCO", 1),
        ("tfrecord, text", "readers___TFRecord", 1),
    ],
)
def test_a_branch_beside_images_and_labels_is_left_out(packed, held_out, name, operator, left):
    """Boxes and texts that only leave the pipeline do not stop it: images and class numbers are run."""
    graph = model.read(packed[name])
    (said,) = edit.prune(graph)
    assert said.startswith("output ")
    assert said.endswith(f"left out: it holds no decoded image, and comes from {operator}")
    assert len(graph.outputs) == left
    edit.check(graph)
    edit.repoint(graph, held_out, [0] * 6)


@pytest.mark.parametrize("name", ["tfrecord, steered", "tfrecord, second image", "tfrecord, no image"])
def test_what_touches_the_images_is_not_left_out(packed, name):
    """A number that steers, a second image and labels of another reader than the images' stay, to be refused."""
    graph = model.read(packed[name])
    assert edit.prune(graph) == []
    assert model.write(graph) == packed[name]


def test_an_ambiguous_argument_of_a_container_is_refused(packed):
    """Arguments that stay are checked as those of any operator; those that go may have any form."""
    graph = model.read(packed["tfrecord"])
    graph.operators[0].arguments += [Argument("path", "string", ["/a"]), Argument("index_path", "string", ["/b"])]
    edit.check(graph)
    graph.operators[0].arguments += [model.argument("initial_fill", 1), model.argument("initial_fill", 2)]
    assert refused(graph) == "unreadable_graph"


def test_the_new_edge_has_a_name_of_its_own(packed, held_out):
    """A reader without labels gets an output for them that no other operator uses, whatever names there are."""
    graph = model.read(packed["webdataset without labels"])
    taken = f"{graph.operators[0].outputs[0].name} label"
    graph.operators[1].outputs[0].name = taken
    edit.repoint(graph, held_out, [0] * 6)
    assert [edge.name for edge in graph.operators[0].outputs][1] == f"{taken}_"


def test_the_clean_room_runs_a_graph_over_a_container(lab_child, packed, held_out):
    """From the bytes to the first batch and the record: facts name the learner's reader, the batch is held-out."""

    def prepared():
        from sandbox.guest.trusted import clean_room
        from sandbox.guest.trusted.children import WithoutGpu

        request = {"blob": packed["tfrecord"], "files": held_out, "threads": 2, "device": "cpu", "experiments": False}
        _, answer = clean_room.prepare(request, WithoutGpu())
        graph = answer["graph"]
        return answer["batch_size"], graph["operators"][0]["name"], graph["changed"], answer["batch"]["shape"]

    batch_size, reader, changed, shape = lab_child(prepared)
    assert (batch_size, reader, shape) == (16, "readers___TFRecord", [16, 3, 32, 32])
    assert changed[0] == "readers.tfrecord replaced by readers.file on 6 held-out images"
