"""The allow-list and the edits, proven by DALI itself: edited graphs run on the CPU and read the given files only."""

import itertools

import pytest

from sandbox.guest.graph import edit, model, wire
from sandbox.guest.graph.edit import GraphRefused
from sandbox.guest.graph.model import Argument, Graph, Operator
from sandbox.guest.graph.wire import LENGTH, Field
from tests.sandbox.guest.editing import draw, edited, refused

pytestmark = pytest.mark.integration

CARRIED = (
    "lab", "cpu", "legacy", "old executor", "deep queue", "many threads", "sharded", "shuffled", "cached", "big hints",
    "files", "file_list", "filters", "moved to the gpu", "trivial", "rand", "auto", "conditional", "two readers",
    "labels first", "ragged", "bytes", "no images",
)  # fmt: skip


def reader_of(graph: Graph) -> Operator:
    return next(operator for operator in graph.operators if operator.row.role == "reader")


def decoder_of(graph: Graph) -> Operator:
    return next(operator for operator in graph.operators if operator.row.role == "decoder")


@pytest.fixture(scope="module")
def drawn(lab_child, graphs, held_out):
    """One batch of every edited graph of the corpus, drawn in one child; each has passed the allow-list."""
    made = {name: edited(graphs[name], held_out) for name in CARRIED}
    return lab_child(
        lambda: {name: draw(data, separated=name == "deep queue") for name, data in made.items()}, timeout=120.0
    )


@pytest.mark.parametrize("name", CARRIED)
def test_an_edited_graph_runs_on_the_cpu_with_the_given_files(drawn, held_out, name):
    """DALI deserializes the edited graph, and every sample comes from a held-out file with its label."""
    outputs = drawn[name]
    assert all(output["class"] == "TensorListCPU" for output in outputs)
    assert all(len(output["shapes"]) == 16 for output in outputs)
    sources = {source for output in outputs for source in output["sources"] if source}
    assert sources <= set(held_out)
    assert sources
    labels = next(output["values"] for output in outputs if output["type"] == "INT32")
    wanted = range(200, 212) if name == "two readers" else range(100, 106)
    assert set(labels) <= set(wanted)


def test_the_whole_set_is_read_whatever_the_shard(drawn, held_out):
    """A graph that declared shard 2 of 4, padded and sticky, reads all files of an epoch."""
    images, labels = drawn["sharded"]
    assert set(labels["values"]) == set(range(100, 106))
    assert set(images["sources"]) == set(held_out)


def test_nothing_of_the_learners_source_is_left(graphs, held_out, jpegs):
    """Root, file list, filters and shards are gone from the bytes themselves; the reader keeps its name."""
    for name in ("lab", "files", "file_list", "filters", "two readers", "sharded"):
        data = edited(graphs[name], held_out)
        assert str(jpegs).encode() not in data
        reader = reader_of(model.read(data))
        assert not [name for name in ("file_root", "file_list", "num_shards", "shard_id") if reader.get(name)]
        assert reader.get("files").values == held_out
    assert reader_of(model.read(edited(graphs["lab"], held_out))).instance == "Reader"


def test_what_was_repointed_is_said(graphs, held_out):
    """The record names the source that was replaced, the shard and the clamped buffer."""
    graph = model.read(graphs["sharded"])
    said = edit.repoint(graph, held_out, [0] * 6)
    assert said == ["reader file_root replaced by 6 held-out images", "shard 2 of 4 replaced by the whole set"]
    said = edit.repoint(model.read(graphs["shuffled"]), held_out, [0] * 6)
    assert f"initial_fill {1 << 30} clamped to {edit.MAX_FILL}" in said
    assert f"prefetch_queue_depth 500 clamped to {edit.MAX_DEPTH}" in said
    assert "skip_cached_images removed" in edit.repoint(model.read(graphs["cached"]), held_out, [0] * 6)


def test_caches_hints_threads_and_queues_are_restrained(graphs):
    """Decoder caches go, memory hints, threads and queue depths are clamped, and each is said once."""
    cached = model.read(graphs["cached"])
    said = edit.restrain(cached, 2)
    assert [text for text in said if "cache" in text] == [f"decoder cache of {decoder_of(cached).instance} removed"]
    assert not [argument.name for argument in decoder_of(cached).arguments if "cache" in argument.name]

    hints = model.read(graphs["big hints"])
    edit.restrain(hints, 2)
    for name, value in {"device_memory_padding": edit.MAX_PADDING, "preallocate_width_hint": 8192}.items():
        assert decoder_of(hints).scalar(name) == value

    many = model.read(graphs["many threads"])
    assert edit.restrain(many, 4) == [
        "num_threads 500 clamped to 4, the cores of every arm",
        "prefetch_queue_depth (50, 50) clamped to (8, 8)",
    ]
    assert (many.num_threads, many.prefetch) == (4, (8, 8))
    deep = model.read(graphs["deep queue"])
    edit.restrain(deep, 4)
    assert deep.prefetch == (8, 3)


def test_a_modest_graph_is_left_as_it_is(graphs):
    """Nothing is reported or changed where nothing had to be."""
    graph = model.read(graphs["cpu"])
    assert edit.restrain(graph, 2) == []
    assert model.write(graph) == graphs["cpu"]


def test_everything_turns_to_the_cpu(graphs):
    """No device argument and no edge says gpu or mixed any more, and the pipeline names no device."""
    for name in CARRIED:
        twin = model.read(edit.cpu_twin(graphs[name]))
        edges = [edge for op in twin.operators for edge in (*op.inputs, *op.outputs)] + twin.outputs + twin.inputs
        assert {edge.device for edge in edges} == {"cpu"}
        assert {op.scalar("device") for op in twin.operators} <= {"cpu", None}
        assert twin.device_id is None


def test_operators_outside_the_list_are_refused_by_name(graphs):
    """One operator whose row has a reason against it refuses the graph, and the message says why."""
    graph = model.read(graphs["lab"])
    graph.operators.append(Operator("DumpImage"))
    assert refused(graph, r"Operator DumpImage cannot be re-run .* not among") == "operator_not_allowed"


def test_python_functions_do_not_serialize(lab_child, jpegs):
    """DALI itself refuses to serialize a graph with fn.python_function."""

    def serialize():
        from tests.sandbox.guest import pipelines

        try:
            pipelines.over_files(pipelines.with_python, str(jpegs)).serialize()
        except RuntimeError as error:
            return str(error)
        return ""

    assert "Could not serialize the operator" in lab_child(serialize)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda graph: graph.operators.clear(), "no_reader"),
        (lambda graph: graph.operators.remove(reader_of(graph)), "no_reader"),
        (lambda graph: graph.operators.remove(decoder_of(graph)), "no_decoder"),
        (lambda graph: setattr(graph, "batch_size", 0), "batch_size"),
        (lambda graph: setattr(graph, "batch_size", -5), "batch_size"),
        (lambda graph: setattr(graph, "batch_size", 1 << 30), "batch_size"),
    ],
)
def test_graphs_without_reader_or_decoder_or_size_are_refused(graphs, change, reason):
    """A graph must read files, decode them, and have a batch size that a person would choose."""
    graph = model.read(graphs["lab"])
    change(graph)
    assert refused(graph) == reason


def smuggled(data: bytes, *arguments: Argument, into=reader_of) -> bytes:
    """A graph with more arguments in its reader or decoder, as a learner could write the bytes."""
    graph = model.read(data)
    into(graph).arguments += arguments
    return model.write(graph)


@pytest.mark.parametrize(
    "arguments",
    [
        (model.argument("file_root", "/etc"),),
        (model.argument("file_root", "/etc"), model.argument("file_root", "/usr")),
        (model.argument("files", ["/etc/passwd"]), model.argument("labels", [1])),
        (model.argument("files", ["/etc/passwd"]), model.argument("files", ["/etc/hosts"])),
        (model.argument("file_list", "/etc/passwd"), model.argument("num_shards", 9), model.argument("num_shards", 5)),
        (Argument("files", "string", ["/etc/passwd"]),),
        (Argument("file_root", "string", ["/etc"], is_vector=True),),
    ],
)
def test_no_second_source_passes_the_edits(lab_child, graphs, held_out, arguments):
    """Contradictory sources are refused or removed; DALI then reads the held-out files."""
    evil = smuggled(graphs["cpu"], *arguments)
    try:
        data = edited(evil, held_out)
    except GraphRefused:  # what the scan of a graph should say; the edits alone must hold as well
        graph = model.read(evil)
        edit.repoint(graph, held_out, [0] * 6)
        data = model.write(graph)
    arguments = [argument for op in model.read(data).operators for argument in op.arguments]
    assert not [value for one in arguments for value in one.values if str(value).startswith(("/etc", "/usr"))]
    assert set(lab_child(draw, data)[0]["sources"]) == set(held_out)


@pytest.mark.parametrize(
    "arguments",
    [
        (
            model.argument("cache_size", 4096),
            model.argument("cache_size", 8192),
            model.argument("cache_type", "largest"),
        ),
        (Argument("cache_size", "int64", [1, 4096]),),
        (model.argument("cache_size", [4096]),),
    ],
)
def test_no_cache_passes_the_edits(graphs, arguments):
    """However often or in whatever form a decoder cache is asked for, none is left."""
    graph = model.read(smuggled(graphs["cached"], *arguments, into=decoder_of))
    edit.restrain(graph, 2)
    assert not [argument.name for argument in decoder_of(graph).arguments if argument.name.startswith("cache")]


@pytest.mark.parametrize(
    "argument",
    [
        Argument("bytes_per_sample_hint", "int64", [1 << 40, 1 << 41], is_vector=True),
        Argument("bytes_per_sample_hint", "int64", [5, 1 << 40]),
        model.argument("bytes_per_sample_hint", 1 << 40),
    ],
)
def test_big_hints_are_clamped_in_every_form(graphs, argument):
    """`bytes_per_sample_hint` may be one number or one per output."""
    graph = model.read(smuggled(graphs["cpu"], argument, into=decoder_of))
    [said] = [text for text in edit.restrain(graph, 2) if "bytes_per_sample_hint" in text]
    assert said.endswith(f"clamped to {edit.MAX_PADDING}")
    assert max(decoder_of(graph).get("bytes_per_sample_hint").values) == edit.MAX_PADDING


def test_an_argument_that_dali_does_not_write_is_refused(graphs):
    """Twice the same name, or unknown fields inside an argument, are unreadable, whichever operator has them."""
    double = model.read(
        smuggled(graphs["lab"], model.argument("hw_decoder_load", 1), model.argument("hw_decoder_load", 2))
    )
    odd = model.read(graphs["lab"])
    odd.operators[-1].arguments[0].unread = b"\x0a\x01x"
    for graph in (double, odd):
        assert refused(graph) == "unreadable_graph"


def test_operators_cannot_hide_behind_a_long_field_number(lab_child, graphs):
    """DALI's parser drops a tag's high bits: without our limit it would run operators that nobody checked."""
    hidden = b"".join(
        wire._encode_varint(1 << 32 | part.number << 3 | part.wire) + wire._encode_varint(len(part.value)) + part.value
        if part.number == 5
        else wire.emit([part])
        for part in wire.parse(graphs["cpu"])
    )
    assert lab_child(draw, hidden)[0]["sources"], "DALI no longer reads such tags: this test lost its point"
    with pytest.raises(wire.WireError, match="field number"):
        model.read(hidden)


def test_unknown_fields_do_not_stop_a_graph(lab_child, graphs, held_out):
    """Fields of a newer DALI are carried along."""
    newer = edited(graphs["cpu"] + wire.emit([Field(77, LENGTH, b"later")]), held_out)
    assert Field(77, LENGTH, b"later") in model.read(newer).rest
    assert set(lab_child(draw, newer)[0]["sources"]) == set(held_out)


@pytest.mark.parametrize(
    ("name", "random"),
    [
        ("lab", ["RandomResizedCrop", "random__CoinFlip"]),
        ("files", ["decoders__ImageRandomCrop"]),
        ("conditional", ["random__CoinFlip", "random__Uniform", "random__Uniform"]),
        ("bytes", []),
    ],
)
def test_random_operators_are_named(graphs, name, random):
    """The operators that make augmentation random are found under all their prefixes."""
    assert sorted(edit.random_operators(model.read(graphs[name]))) == sorted(random)


def test_an_operator_without_a_cpu_implementation_needs_a_gpu(graphs):
    """It is allowed, and a rehearsal says why it cannot run it; nothing else of the corpus needs a GPU."""
    graph = model.read(graphs["lab"])
    edit.require_cpu(graph)
    graph.operators.append(Operator("experimental__MedianBlur"))
    edit.check(graph)
    assert refused(graph, "experimental__MedianBlur has no CPU implementation", by=edit.require_cpu) == "needs_gpu"
    with pytest.raises(edit.GraphRefused, match="has no CPU implementation"):  # so that DALI itself asks for a GPU
        edit.cpu_twin(model.write(graph))


def test_a_rehearsal_runs_no_gpu_operator(lab_child, graphs):
    """A probe is told so, too."""
    jittered = model.read(graphs["lab"])
    jittered.operators.append(Operator("Jitter"))

    def told():
        from sandbox.guest.trusted.graph_context import CarriedGraph

        return [CarriedGraph("pipe", model.write(jittered), device, 2, {}).refused for device in ("cpu", "cuda")]

    assert lab_child(told) == [
        "Operator Jitter has no CPU implementation, so a rehearsal without a GPU cannot run it.",
        "",
    ]


def test_several_readers_read_in_one_order(lab_child, graphs, held_out):
    """Shuffling ends for all of them, in every form, and is said; one reader alone keeps it."""
    graph = model.read(graphs["two readers"])
    readers = [operator for operator in graph.operators if operator.row.role == "reader"]
    assert "shuffling" not in " ".join(edit.repoint(model.read(graphs["two readers"]), held_out, [0] * 6))
    readers[0].put(model.argument("shuffle_after_epoch", True))
    readers[1].put(model.argument("random_shuffle", True))
    said = edit.repoint(graph, held_out, list(range(6)))
    assert said[0] == "2 readers read the same images in the same order: shuffling turned off"
    for reader in readers:
        assert [reader.scalar(name) for name in ("random_shuffle", "shuffle_after_epoch")] == [False, False]
    edit.to_cpu(graph)
    labels = lab_child(draw, model.write(graph))[1]["values"]
    assert labels == [2 * (place % 6) for place in range(16)]
    alone = model.read(graphs["lab"])
    edit.repoint(alone, held_out, [0] * 6)
    assert reader_of(alone).scalar("random_shuffle") is True


def test_edits_can_be_repeated(graphs, held_out):
    """Editing an edited graph changes nothing but the record: no argument is there twice."""
    for name in itertools.islice(CARRIED, 12):
        once = edited(graphs[name], held_out)
        assert edited(once, held_out) == once
