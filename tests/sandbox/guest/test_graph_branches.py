"""Branches beside a graph's images are left out; those that reach the images or their bytes are refused."""

import pytest

from sandbox.guest.graph import edit, model
from sandbox.guest.graph.model import Edge, Operator
from sandbox.guest.graph.wire import LENGTH, VARINT, Field
from tests.sandbox.guest.editing import draw, edited, refused
from tests.sandbox.guest.test_graph_edit import decoder_of, reader_of

pytestmark = pytest.mark.integration


def from_branches(root: str) -> dict[str, bytes]:
    """Graphs that work on encoded images, or have branches beside the images; for use in a child."""
    from nvidia.dali import fn, types

    from tests.sandbox.guest import pipelines

    def finished(jpegs, **options):
        return pipelines.finished(fn.decoders.image(jpegs, device="cpu"), **options)

    def numbers():
        return fn.external_source(source=lambda info: 1, batch=False, parallel=False)

    def arrays():
        return fn.readers.numpy(file_root="/nowhere")

    def either(jpegs):
        if fn.random.coin_flip(dtype=types.BOOL):
            return fn.decoders.image(jpegs)
        return fn.decoders.image_random_crop(jpegs)

    made = {
        "numpy": lambda j, label: (finished(j), label, fn.cast(arrays(), dtype=types.FLOAT)),
        "numpy first": lambda j, label: (arrays(), finished(j), label),
        "flipped boxes": lambda j, label: (
            finished(j), fn.bb_flip(fn.readers.coco(file_root="/n", annotations_file="/n.json")[1]), label
        ),
        "numpy argument": lambda j, label: (finished(j), label, fn.random.uniform(range=(0.0, 1.0), shape=arrays())),
        "numpy steers": lambda j, label: (finished(j, mirror=fn.cast(arrays(), dtype=types.INT32)), label),
        "numpy mixed in": lambda j, label: (finished(j) + arrays(), label),
        "python number": lambda j, label: (finished(j), label, numbers()),
        "undecoded": lambda j, label: (arrays(), label),
        "peeked": lambda j, label: (finished(j), label, fn.peek_image_shape(j)),
        "copied": lambda j, label: (finished(fn.copy(j)), label),
        "encoded output": lambda j, label: (finished(j), label, j),
        "sizes": lambda j, label: (finished(j), label, fn.shapes(j)),
        "sum": lambda j, label: (finished(fn.copy(j)), label, fn.reductions.sum(j)),
        "sum of a copy": lambda j, label: (finished(j), label, fn.reductions.sum(fn.copy(j))),
        "changed bytes": lambda j, label: (finished(fn.cast(j + 0, dtype=types.UINT8)), label),
        "steering bytes": lambda j, label: (
            finished(j), label, fn.random.uniform(values=fn.cast(j, dtype=types.FLOAT)),
        ),
        "condition": lambda j, label: (pipelines.finished(either(j)), label),
        "property": lambda j, label: (finished(j), label, fn.get_property(j, key="source_info")),
    }  # fmt: skip

    pipes = {name: pipelines.over_files(of, root, branches=True, random_shuffle=True) for name, of in made.items()}
    return {name: bytes(pipe.serialize()) for name, pipe in pipes.items()}


@pytest.fixture(scope="module")
def branches(lab_child, jpegs):
    """Those graphs."""
    return lab_child(from_branches, str(jpegs))


@pytest.mark.parametrize(
    ("name", "gone", "idle", "left"),
    [
        ("numpy", "output 3", ["readers__Numpy", "Cast"], 2),
        ("numpy first", "output 1", ["readers__Numpy"], 2),
        ("flipped boxes", "output 2", ["readers__COCO", "BbFlip"], 2),
        ("numpy argument", "output 3", ["readers__Numpy", "random__Uniform"], 2),
        ("python number", "output 3", ["ExternalSource"], 2),
    ],
)
def test_a_branch_beside_the_images_is_left_out(lab_child, branches, held_out, name, gone, idle, left):
    """The output and all that feeds it alone go, and are named; DALI runs the rest with labels and all."""
    graph = model.read(branches[name])
    output, operators = edit.prune(graph)
    assert output.startswith(f"{gone} left out: it holds no decoded image, and comes from ")
    said = operators.removeprefix("operators that feed nothing else left out: ").split(", ")
    assert sorted(said) == sorted(idle)
    assert len(graph.outputs) == left
    drawn = lab_child(draw, edited(model.write(graph), held_out))
    assert drawn[0]["shapes"][0][1:] == [32, 32]
    assert set(drawn[1]["values"]) == set(range(100, 106))


def test_idle_operators_are_left_out(graphs):
    """What feeds nothing goes with its inputs, whether it is refused or not."""
    graph = model.read(graphs["lab"])
    graph.operators.append(Operator("CoinFlip", outputs=[Edge("a", "cpu", [])]))
    graph.operators.append(Operator("DumpImage", inputs=[Edge("a", "cpu", [])], outputs=[Edge("b", "cpu", [])]))
    assert edit.prune(graph) == ["operators that feed nothing else left out: CoinFlip, DumpImage"]
    assert model.write(graph) == graphs["lab"]


@pytest.mark.parametrize("name", ["peeked", "copied", "encoded output"])
def test_encoded_images_may_be_passed_on_and_measured(branches, name):
    """A copy, the size in the header and the bytes themselves as an output are no work on encoded images."""
    edit.check(model.read(branches[name]))


NOT_NATIVE, ENCODED = "operator_not_allowed", "encoded_images"


@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("numpy steers", NOT_NATIVE, "Numpy reads a container format"),
        ("numpy mixed in", NOT_NATIVE, "Numpy reads a container format"),
        ("undecoded", NOT_NATIVE, "Numpy reads a container format"),
        ("sizes", ENCODED, "Operator Shapes works on the bytes"),
        ("sum", ENCODED, "Operator reductions__Sum works on the bytes"),
        ("sum of a copy", ENCODED, "Operator reductions__Sum works on the bytes"),
        ("changed bytes", ENCODED, "Operator _ArithmeticGenericOp works on the bytes"),
        ("steering bytes", ENCODED, "Operator Cast works on the bytes"),
        ("condition", ENCODED, "Operator _conditional__Split chooses by a condition"),
        ("property", ENCODED, "Operator GetProperty works on the bytes"),
    ],
)
def test_a_branch_that_reaches_the_images_or_their_bytes_is_refused(branches, name, reason, words):
    """What images are made or steered with is no side branch, and a graph without images keeps its old message.

    Whoever looks into the bytes of a file knows more of it than its picture; the message says what does.
    """
    graph = model.read(branches[name])
    before = model.write(graph)
    assert edit.prune(graph) == []
    assert model.write(graph) == before
    assert refused(graph, words) == reason


def test_encoded_images_steer_nothing(graphs):
    """Neither an argument nor a second input takes them, also where the operator stands before what feeds it."""
    for inputs, words in (
        ([Field(3, VARINT, 1), Field(4, LENGTH, b"angle")], "for its argument 'angle'"),
        ([Field(3, VARINT, 0)], "works on the bytes"),
    ):
        graph = model.read(graphs["lab"])
        jpegs = reader_of(graph).outputs[0].name
        graph.operators.insert(0, Operator("Rotate", inputs=[Edge("copy", "cpu", inputs)]))
        graph.operators.append(Operator("Copy", inputs=[Edge(jpegs, "cpu", [])], outputs=[Edge("copy", "cpu", [])]))
        assert refused(graph, words) == ENCODED
    graph = model.read(graphs["lab"])
    decoder_of(graph).inputs.append(Edge(reader_of(graph).outputs[0].name, "cpu", []))
    assert refused(graph, "decoders__Image works on the bytes") == ENCODED
