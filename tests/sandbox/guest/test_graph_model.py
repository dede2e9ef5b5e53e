"""DALI graphs as objects: lossless for what DALI writes, WireError for everything that is no graph."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.guest.graph import model, wire
from sandbox.guest.graph.model import Argument, Edge, Graph, Operator
from sandbox.guest.graph.wire import FIXED32, LENGTH, VARINT, Field, WireError

pytestmark = pytest.mark.integration

NAMES = st.text(max_size=12)
INTS = st.integers(-(1 << 63), (1 << 63) - 1)
FLOATS = st.floats(width=32, allow_nan=False)


def arguments():
    """Arguments of every type, scalar and vector."""
    kinds = {"string": NAMES, "int64": INTS, "float": FLOATS, "bool": st.booleans()}

    def of(kind):
        scalar = st.builds(lambda name, value: Argument(name, kind, [value]), NAMES, kinds[kind])
        vector = st.builds(
            lambda name, values: Argument(name, kind, values, is_vector=True), NAMES, st.lists(kinds[kind], max_size=5)
        )
        return scalar | vector

    return st.sampled_from(sorted(kinds)).flatmap(of)


UNKNOWN = st.lists(st.builds(Field, st.integers(20, 90), st.just(LENGTH), st.binary(max_size=9)), max_size=2)
EDGES = st.builds(Edge, NAMES, st.sampled_from(["cpu", "gpu", ""]), UNKNOWN)
OPERATORS = st.builds(
    Operator,
    NAMES,
    st.lists(EDGES, max_size=2),
    st.lists(EDGES, max_size=2),
    st.lists(arguments(), max_size=5),
    NAMES,
    UNKNOWN,
)
GRAPHS = st.builds(
    Graph,
    st.lists(OPERATORS, max_size=4),
    st.lists(EDGES, max_size=1),
    st.lists(EDGES, max_size=2),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.none() | st.integers(-99999, 8),
    st.tuples(st.integers(-1, 100), st.integers(-1, 100)),
    UNKNOWN.map(lambda fields: sorted(fields, key=lambda field: field.number)),
)


def assert_stable(graph):
    """Written once or twice, the graph is the same; fields of other numbers may have changed places."""
    assert model.write(model.read(model.write(graph))) == model.write(graph)


@given(GRAPHS)
@settings(deadline=None)
def test_operators_of_a_name_are_read_without_the_others(graph):
    """The same operators as in the whole graph."""
    data = model.write(graph)
    names = {operator.name for operator in graph.operators[:2]}
    whole = [operator for operator in model.read(data).operators if operator.name in names]
    assert model.operators_of(data, names.__contains__) == whole


def assert_read_or_refused(data):
    """Either a graph that is stable, or a WireError."""
    try:
        graph = model.read(data)
    except WireError:
        return
    assert_stable(graph)


@settings(max_examples=80, deadline=None)
@given(GRAPHS)
def test_any_graph_survives_a_round_trip(graph):
    """What is written is read back, with unknown fields, negative numbers and empty vectors."""
    assert model.read(model.write(graph)) == graph


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=600))
def test_garbage_is_a_graph_or_a_wire_error(data):
    """No bytes give any other exception."""
    assert_read_or_refused(data)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_a_damaged_real_graph_is_a_graph_or_a_wire_error(graphs, data):
    """Bytes of a real graph, changed in a few places, are read or refused."""
    damaged = bytearray(graphs[data.draw(st.sampled_from(["lab", "file_list", "conditional"]))])
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(len(damaged) // 2, len(damaged))) :]
    assert_read_or_refused(bytes(damaged))


def test_what_dali_wrote_is_written_back_byte_for_byte(graphs):
    """Every real graph of the corpus, TrivialAugment and the class API among them, is lossless."""
    for name, data in graphs.items():
        assert model.write(model.read(data)) == data, name
    assert len(graphs["rand"]) > 500_000


def test_a_real_graph_says_what_the_code_said(graphs):
    """Batch size, threads, queue depths, devices, operators in order, and the line that made each."""
    graph = model.read(graphs["lab"])
    assert (graph.batch_size, graph.num_threads, graph.prefetch) == (16, 2, (2, 2))
    names = [operator.name for operator in graph.operators]
    assert names[:3] == ["readers__File", "decoders__Image", "Resize"]
    assert names[-1] == "CropMirrorNormalize"
    assert [edge.device for edge in graph.outputs] == ["gpu", "gpu"]
    reader = graph.operators[0]
    assert reader.instance == "Reader"
    assert reader.scalar("random_shuffle") is True
    file, line = reader.origin
    assert file.endswith("tests/sandbox/guest/pipelines.py")
    with open(file, encoding="utf-8") as source:
        assert "fn.readers.file" in source.read().splitlines()[line - 1]
    assert model.read(graphs["deep queue"]).prefetch == (40, 3)


def test_arguments_are_found_set_and_dropped():
    """`put` replaces by name, `drop` says what was there."""
    operator = Operator(
        "X", arguments=[model.argument("a", "1"), model.argument("b", 2), model.argument("c", ["x", "y"])]
    )
    assert operator.scalar("a") == "1"
    assert operator.scalar("c") is None
    operator.put(model.argument("a", 5))
    assert [argument.values for argument in operator.arguments if argument.name == "a"] == [[5]]
    assert operator.drop("a", "c", "missing") == ["c", "a"]
    assert [argument.name for argument in operator.arguments] == ["b"]
    assert operator.origin == ("", None)


def test_size_is_capped():
    """More bytes or operators than any honest graph has are refused."""
    with pytest.raises(WireError, match="expected at most"):
        model.read(b"\0" * (model.MAX_GRAPH_BYTES + 1))
    with pytest.raises(WireError, match="operators"):
        model.read(wire.emit([Field(5, LENGTH, b"")] * (model.MAX_OPERATORS + 1)))


EDGE = [Field(1, LENGTH, b"x"), Field(2, LENGTH, b"cpu"), Field(3, VARINT, 1), Field(4, LENGTH, b"angle")]


@pytest.mark.parametrize("number", [1, 2, 8, 11, 13, 14])
def test_a_field_of_the_pipeline_that_stands_twice_is_refused(graphs, number):
    """Which batch size or queue counts must not be a matter of who reads the bytes: protobuf takes the last one."""
    once = wire.parse(graphs["deep queue"])
    first = next((part for part in once if part.number == number), None)
    twice = [Field(number, VARINT, 3)] * (1 if first else 2)
    with pytest.raises(WireError, match=f"the pipeline has field {number} twice"):
        model.read(wire.emit(once + twice))


@pytest.mark.parametrize("number", [1, 5])
def test_a_field_of_an_operator_that_stands_twice_is_refused(number):
    """Its name, by which it is allowed, and the name of the instance."""
    twice = wire.emit([Field(number, LENGTH, b"Copy"), Field(9, VARINT, 1), Field(number, LENGTH, b"DumpImage")])
    with pytest.raises(WireError, match=f"an operator has field {number} twice"):
        model.read(wire.emit([Field(5, LENGTH, twice)]))


@pytest.mark.parametrize("owner", [2, 3, 7])
@pytest.mark.parametrize("part", EDGE, ids=["name", "device", "is argument", "argument"])
def test_a_field_of_an_edge_that_stands_twice_is_refused(owner, part):
    """Of an operator's input and output and of the pipeline's output alike; in another wire type even once."""
    odd = Field(part.number, FIXED32, b"\0\0\0\1")
    for fields, words in (([*EDGE, part], "twice"), ([*EDGE, odd], "twice"), ([odd], "in a form that DALI does not")):
        edge = wire.emit(fields)
        data = [Field(7, LENGTH, edge)] if owner == 7 else [Field(5, LENGTH, wire.emit([Field(owner, LENGTH, edge)]))]
        with pytest.raises(WireError, match=f"an input or output has field {part.number} {words}"):
            model.read(wire.emit(data))


def test_an_edge_says_what_it_feeds(graphs):
    """Plain inputs steer nothing; a field of another wire type is none to DALI, and so none here."""
    edges = [edge for operator in model.read(graphs["lab"]).operators for edge in operator.inputs]
    assert {(edge.steers, edge.argument) for edge in edges} == {(False, ""), (True, "mirror")}
    odd = Edge("x", "cpu", [Field(3, LENGTH, b"1"), Field(4, FIXED32, b"size")])
    assert (odd.steers, odd.argument) == (False, "")
    assert not Edge("x", "cpu", [Field(3, VARINT, 0), Field(4, LENGTH, b"size")]).steers
    with pytest.raises(WireError, match="UTF-8"):
        model.read(wire.emit([Field(7, LENGTH, wire.emit([Field(4, LENGTH, b"\xff")]))]))


def test_deep_nesting_is_refused():
    """Arguments nested ten thousand deep are a WireError, not a recursion error."""
    argument = b""
    for _ in range(10_000):
        argument = wire.emit([Field(7, LENGTH, argument)])
    with pytest.raises(WireError, match="nested"):
        model.read(wire.emit([Field(5, LENGTH, wire.emit([Field(4, LENGTH, argument)]))]))


def test_the_largest_graph_is_read_in_bounded_time():
    """Megabytes of the smallest possible fields take seconds, not minutes."""
    operator = wire.emit([Field(4, LENGTH, wire.emit([Field(4, VARINT, 1)] * 190_000))])
    data = wire.emit([Field(5, LENGTH, operator)] * 4)
    started = time.process_time()
    model.read(data)
    assert time.process_time() - started < 20.0


@pytest.mark.parametrize(
    "fields",
    [
        [Field(5, VARINT, 1)],
        [Field(4, LENGTH, b"\x01\x02")],
        [Field(3, LENGTH, b"\x01\x02")],
        [Field(3, FIXED32, b"\0\0\0\0"), Field(6, LENGTH, b"x")],
        [Field(1, LENGTH, b"\xff\xfe")],
    ],
    ids=["string as varint", "packed ints", "packed floats", "packed bools", "name is no UTF-8"],
)
def test_values_in_a_form_that_dali_does_not_write_are_refused(fields):
    """Protobuf would read packed numbers where we see bytes, so they are refused."""
    with pytest.raises(WireError):
        model.read(wire.emit([Field(5, LENGTH, wire.emit([Field(4, LENGTH, wire.emit(fields))]))]))


def test_an_unknown_field_of_an_argument_keeps_the_argument_as_it_came():
    """Such an argument is written back untouched and marked, so that the allow-list can refuse it."""
    data = wire.emit([Field(1, LENGTH, b"x"), Field(2, LENGTH, b"int64"), Field(4, VARINT, 3), Field(99, VARINT, 1)])
    graph = model.read(wire.emit([Field(5, LENGTH, wire.emit([Field(4, LENGTH, data)]))]))
    assert graph.operators[0].arguments[0].unread == data
    assert_stable(graph)
