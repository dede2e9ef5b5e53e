"""How images and numbers flow through graphs: what holds images, what steers, and what can be left out."""

import copy

import pytest

from sandbox.guest.graph import flow, neutral
from sandbox.guest.graph.model import Argument, Edge, Graph, Operator, argument
from sandbox.guest.graph.wire import LENGTH, VARINT, Field


def edge(name, argument=""):
    """An input; of an argument where its name is given."""
    rest = [Field(3, VARINT, 1), Field(4, LENGTH, argument.encode())] if argument else [Field(3, VARINT, 0)]
    return Edge(name, "cpu", rest)


def op(name, inputs, outputs, *arguments, **wires):
    """An operator by the names of its edges, in one text each; `wires` are arguments that others compute."""
    taken = [edge(one) for one in inputs.split()] + [edge(one, argument) for argument, one in wires.items()]
    return Operator(name, taken, [edge(one) for one in outputs.split()], list(arguments))


def graph(*operators, outputs="out"):
    return Graph(list(operators), [], [edge(name) for name in outputs.split()], 16, 2, None, (1, 1), [])


READER = op("readers__File", "", "jpegs labels")
DECODER = op("decoders__Image", "jpegs", "decoded")
TURNED = op("Rotate", "decoded", "turned", angle="angle")
ANGLE = op("random__Uniform", "", "angle")
SIMPLE = graph(READER, DECODER, ANGLE, TURNED, op("Resize", "turned", "out"), outputs="out labels")


def names(found, of):
    return [of.operators[place].name for place in sorted(found)]


def test_images_descend_from_a_decoder_of_files():
    """Encoded images are none, nor are class numbers, nor numbers that steer."""
    assert flow.image_edges(SIMPLE) == {"decoded", "turned", "out"}


def test_pictures_of_the_graphs_own_are_no_images():
    """A constant that is decoded is none; what is made of it and of an image together is one."""
    stamp = op("decoders__Image", "constant", "stamp")
    mixed = op("_ArithmeticGenericOp", "stamp decoded", "out")
    found = flow.image_edges(graph(READER, DECODER, op("Constant", "", "constant"), stamp, mixed))
    assert found == {"decoded", "out"}


def test_what_an_image_only_steers_is_no_image():
    """Noise whose strength comes from an image shows nothing of it."""
    found = flow.image_edges(graph(READER, DECODER, op("random__Normal", "noise", "out", stddev="decoded")))
    assert found == {"decoded"}


@pytest.mark.parametrize("passing", ["Copy", "MakeContiguous"])
def test_encoded_images_may_be_passed_on(passing):
    """A decoder after that still decodes a file; so does one of a container's."""
    handed = op(passing, "jpegs", "copy")
    assert flow.image_edges(graph(READER, handed, op("decoders__Image", "copy", "out"))) == {"out"}
    container = op("readers__Webdataset", "", "jpegs labels")
    assert flow.image_edges(graph(container, op("decoders__Image", "jpegs", "out"))) == {"out"}


def test_bytes_with_a_number_added_are_no_file():
    """What is decoded then is none of the files' images, even where a file's size went into it."""
    shape = op("PeekImageShape", "jpegs", "shape")
    bytes_ = op("_ArithmeticGenericOp", "constant shape", "bytes")
    found = flow.image_edges(
        graph(READER, op("Constant", "", "constant"), shape, bytes_, op("decoders__Image", "bytes", "out"))
    )
    assert found == set()


def test_images_within_branches_are_known():
    """From the split to the merge, nested ones too."""
    split = op("_conditional__Split", "decoded wish", "yes no")
    turned = op("Rotate", "yes", "turned")
    within = op("_conditional__Split", "turned wish", "one two"), op("_conditional__Merge", "one two wish", "same")
    made = graph(READER, DECODER, split, turned, *within, op("_conditional__Merge", "same no wish", "out"))
    assert flow.branches(made) == {"yes", "no", "turned", "one", "two", "same"}


def test_every_decoder_on_the_way_is_found():
    """Of both branches, and not one whose image is dropped or only steers."""
    other = op("decoders__ImageRandomCrop", "jpegs", "window")
    dropped = op("decoders__ImageCrop", "jpegs", "dropped")
    strength = op("decoders__ImageSlice", "jpegs", "strength")
    joined = op("_ArithmeticGenericOp", "decoded window", "sum")
    made = graph(
        READER, DECODER, other, dropped, strength, joined, op("Brightness", "sum", "out", brightness="strength")
    )
    assert names(flow.path_decoders(made, 0), made) == ["decoders__Image", "decoders__ImageRandomCrop"]


def test_an_output_without_images_has_no_decoder():
    """Neither numbers, nor what a decoder only had a say in."""
    noise = op("random__Normal", "", "out", stddev="decoded")
    assert flow.path_decoders(graph(READER, DECODER, noise), 0) == []
    assert flow.path_decoders(SIMPLE, 1) == []


def test_all_that_an_output_hangs_on_is_behind_it():
    """In whatever way."""
    assert names(flow.behind(SIMPLE, 0), SIMPLE) == [operator.name for operator in SIMPLE.operators]
    assert names(flow.behind(SIMPLE, 1), SIMPLE) == ["readers__File"]


def test_arguments_and_numbers_steer():
    """And what they were made of; images that are worked on do not."""
    assert names(flow.steering(SIMPLE, 0), SIMPLE) == ["random__Uniform"]
    window = op("decoders__ImageSlice", "jpegs corner extent", "out")
    sliced = graph(READER, op("Constant", "", "corner"), op("random__Uniform", "", "extent"), window)
    assert names(flow.steering(sliced, 0), sliced) == ["Constant", "random__Uniform"]
    added = graph(
        READER, DECODER, op("random__Normal", "", "noise"), op("_ArithmeticGenericOp", "decoded noise", "out")
    )
    assert names(flow.steering(added, 0), added) == ["random__Normal"]


def test_an_image_that_steers_brings_its_ancestors_along():
    """A brightness that is computed of the image hangs on all that made it."""
    mean = op("reductions__Mean", "decoded", "mean")
    steered = graph(READER, DECODER, mean, op("Brightness", "decoded", "out", brightness="mean"))
    assert names(flow.steering(steered, 0), steered) == ["readers__File", "decoders__Image", "reductions__Mean"]


ORDER = op("BatchPermutation", "", "order")
SHUFFLED_IMAGES = op("PermuteBatch", "decoded", "others", indices="order")
SHUFFLED_ANGLE = op("PermuteBatch", "angle", "shuffled", indices="order")
DOUBTS = {
    "usual": ("", ANGLE, TURNED, op("Resize", "turned", "out")),
    "mixup": ("", ORDER, SHUFFLED_IMAGES, op("_ArithmeticGenericOp", "decoded others", "out")),
    "normalised batch": ("", op("Normalize", "decoded", "out", argument("batch", True))),
    "pasted": ("", op("MultiPaste", "decoded", "out")),
    "padded": ("", op("Pad", "decoded", "out")),
    "padded to a size": (
        "",
        op("Pad", "decoded", "padded", argument("shape", [96, 96, 3])),
        op("_Shape", "padded", "size"),
        op("Slice", "decoded size", "out"),
    ),
    "layout": ("", op("GetProperty", "decoded", "layout", argument("key", "layout")), op("Copy", "decoded", "out")),
    "beside the images": ("", op("Copy", "decoded", "out"), ANGLE, ORDER, SHUFFLED_ANGLE),
    "permuted number": ("PermuteBatch", ANGLE, ORDER, SHUFFLED_ANGLE, op("Rotate", "decoded", "out", angle="shuffled")),
    "mean of another image": (
        "PermuteBatch",
        ORDER,
        SHUFFLED_IMAGES,
        op("reductions__Mean", "others", "mean"),
        op("Brightness", "decoded", "out", brightness="mean"),
    ),
    "most of a batch": (
        "Normalize",
        op("Normalize", "decoded", "normal", argument("batch", True)),
        op("reductions__Max", "normal", "most"),
        op("Rotate", "decoded", "out", angle="most"),
    ),
    "name of a file": (
        "source_info",
        op("GetProperty", "decoded", "name", argument("key", "source_info")),
        op("reductions__Mean", "name", "mean"),
        op("Rotate", "decoded", "out", angle="mean"),
    ),
    "largest of a batch": (
        "Pad",
        ANGLE,
        op("Pad", "angle", "longest"),
        op("Rotate", "decoded", "out", angle="longest"),
    ),
    "size of the largest": (
        "Pad",
        op("Pad", "decoded", "padded", argument("shape", [96, -1, 3])),
        op("_Shape", "padded", "largest"),
        op("Slice", "decoded largest", "out"),
    ),
    "branch without end": ("condition", op("_conditional__Split", "decoded", "out other")),
    "grey beside colours": (
        "grey",
        op("decoders__Image", "jpegs", "grey", argument("output_type", flow.GRAY)),
        op("_ArithmeticGenericOp", "decoded grey", "out"),
    ),
}
"""A word of the doubt, empty where there is none, and the operators behind a reader and a decoder."""


@pytest.mark.parametrize("name", DOUBTS)
def test_what_could_know_that_it_is_watched_is_doubted(name):
    """What one image of a batch decides for another, and names of files; the operator is named.

    Images of a batch may be mixed, and normalised together; what feeds nothing does not count.
    """
    word, *operators = DOUBTS[name]
    doubt = flow.doubt(graph(READER, DECODER, *operators), 0)
    assert word in doubt
    assert bool(doubt) == bool(word)


def test_operators_that_feed_nothing_go():
    """And nothing else."""
    made = copy.deepcopy(SIMPLE)
    made.outputs = made.outputs[1:]
    assert flow.drop_idle(made) == ["decoders__Image", "random__Uniform", "Rotate", "Resize"]
    assert [operator.name for operator in made.operators] == ["readers__File"]


CHAIN = graph(
    READER,
    DECODER,
    ANGLE,
    TURNED,
    op("Brightness", "turned", "bright", Argument("brightness", "float", [0.5])),
    op("Rotate", "bright", "again", angle="angle"),
    op("GaussianBlur", "again", "blurred"),
    op("Flip", "blurred", "flipped"),
    op("Erase", "flipped", "out"),
    op("Hue", "decoded", "dropped"),
    op("Constant", "", "constant"),
    op("Contrast", "constant", "other"),
    op("_ArithmeticGenericOp", "out other", "sum"),
    outputs="sum",
)


def test_what_works_on_images_is_found_by_its_kind():
    """Twice where it stands twice; not where it feeds nothing, works on a constant, or costs the reference nothing."""
    found = {work: names(places, CHAIN) for work, places in neutral.workers(CHAIN, 0).items()}
    assert found == {"turn": ["Rotate", "Rotate"], "colour": ["Brightness"], "blur": ["GaussianBlur"]}


def test_an_operator_that_is_left_out_hands_its_input_on():
    """Several in a row, one after the other; the graph that they are left out of stays as it is."""
    before = copy.deepcopy(CHAIN)
    left = neutral.without(CHAIN, {3, 4, 5})
    assert before == CHAIN
    assert [operator.name for operator in left.operators[:5]] == [
        "readers__File", "decoders__Image", "random__Uniform", "GaussianBlur", "Flip",
    ]  # fmt: skip
    assert [one.name for one in left.operators[3].inputs] == ["decoded"]
    assert left.outputs == CHAIN.outputs


def test_the_last_operator_can_be_left_out():
    """The pipeline's output is its input then, on the device where that is."""
    made = graph(READER, DECODER, op("GaussianBlur", "decoded", "out"))
    made.operators[1].outputs[0].device = made.operators[2].inputs[0].device = "gpu"
    (output,) = neutral.without(made, {2}).outputs
    assert (output.name, output.device) == ("decoded", "gpu")


def test_an_argument_of_a_kept_operator_follows():
    """What steers may come from one that is left out, too."""
    mean = op("reductions__Mean", "blurred", "mean")
    last = op("Brightness", "decoded", "out", brightness="mean")
    left = neutral.without(graph(READER, DECODER, op("GaussianBlur", "decoded", "blurred"), mean, last), {2})
    assert [one.name for one in left.operators[2].inputs] == ["decoded"]
    assert [(one.name, one.argument) for one in left.operators[3].inputs] == [("decoded", ""), ("mean", "brightness")]


def test_without_nothing_is_the_same():
    """A copy."""
    left = neutral.without(CHAIN, set())
    assert left == CHAIN
    assert left is not CHAIN
