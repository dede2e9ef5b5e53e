"""Stated placement against the operators of a graph."""

import pytest

from checks.placement_table.check import placement_table
from grader_service.model.evidence import CleanRoom, OperatorFacts
from grader_service.model.verdict import Outcome
from tests.checks.brief import assert_brief
from tests.checks.claims.conftest import evidence_with
from tests.checks.judged import judged
from tests.factories import a_clean_room, a_discovery, a_graph

CHECK = placement_table


def graph(*operators: str):
    """A graph with operators given as `name@device`; each stands on a line of its own."""
    pairs = [text.split("@") for text in operators]
    facts = tuple(
        OperatorFacts(name=name, device=device, file="submission.py", line=10 + number)
        for number, (name, device) in enumerate(pairs)
    )
    return a_graph(operators=facts, output_devices=("gpu", "cpu"))


PLAIN = graph(
    *("readers__File@cpu", "decoders__Image@mixed", "Resize@gpu", "random__CoinFlip@cpu", "CropMirrorNormalize@gpu")
)
LAB = graph(
    *("readers__File@cpu", "decoders__Image@mixed", "Resize@gpu", "RandomResizedCrop@gpu", "random__CoinFlip@cpu"),
    "CropMirrorNormalize@gpu",
)
FUSED = graph("readers__File@cpu", "decoders__ImageRandomCrop@mixed", "Resize@gpu", "CropMirrorNormalize@gpu")
ON_CPU = graph("readers__File@cpu", "decoders__Image@cpu", "Resize@cpu", "CropMirrorNormalize@gpu")
COLOUR = graph(
    *("readers__File@cpu", "decoders__Image@mixed", "Resize@gpu", "random__Uniform@cpu", "ColorTwist@gpu", "Flip@gpu"),
    *("Rotate@gpu", "Cast@gpu", "Normalize@gpu", "Crop@gpu"),
)

GOOD = [
    (PLAIN, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}),
    (
        PLAIN,
        {"fn.readers.file": "CPU", "fn.decoders.image": "Mixed", "fn.resize": "GPU", "crop_mirror_normalize": "GPU"},
    ),
    (PLAIN, {"File reading": "cpu", "JPEG decoding": "cpu -> gpu", "Resizing": "cuda", "Normalisation": "cuda:0"}),
    (PLAIN, {"reader": "host", "decoder": "mixed (nvJPEG)", "Resize": "gpu", "CropMirrorNormalize": "gpu"}),
    (PLAIN, {"load files": "cpu", "image decode": ["cpu", "gpu"], "resize + normalize": "gpu"}),
    (PLAIN, {"readers.file": "cpu", "decoders.image": "mixed", "augmentations": "gpu"}),
    (PLAIN, {"cpu": ["reader"], "mixed": ["decoder"], "gpu": ["resize", "normalize"]}),
    (PLAIN, {"reader": "cpu", "coin_flip": "cpu", "decode": "mixed", "resize": "gpu", "cmn": "gpu", "output": "gpu"}),
    (LAB, {"read": "cpu", "decode": "mixed", "resize": "gpu", "random_resized_crop": "gpu", "normalize": "gpu"}),
    (LAB, {"read": "cpu", "decode": "mixed", "resize": "gpu", "random crop": "gpu", "mirror + normalise": "gpu"}),
    (FUSED, {"read": "cpu", "decode": "mixed", "crop": "mixed", "resize": "gpu", "normalise": "gpu"}),
    (FUSED, {"reading": "cpu", "image_random_crop": "mixed", "resize": "gpu", "crop_mirror_normalize": "gpu"}),
    (ON_CPU, {"read": "cpu", "decode": "cpu", "resize": "cpu", "normalize": "gpu"}),
    (
        COLOUR,
        {"read": "cpu", "decode": "mixed"}
        | dict.fromkeys(("resize", "color twist", "flip", "rotation", "normalize", "crop", "training"), "gpu"),
    ),
    (COLOUR, {"readers": "cpu", "decoders": "mixed", "transforms": "gpu", "labels": "cpu"}),
]
BAD = [
    (PLAIN, {"read": "gpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}, "wrong"),
    (PLAIN, {"read": "cpu", "decode": "cpu", "resize": "gpu", "normalize": "gpu"}, "wrong"),
    (PLAIN, {"read": "cpu", "decode": "gpu", "resize": "gpu", "normalize": "gpu"}, "wrong"),
    (PLAIN, {"read": "cpu", "decode": "mixed", "resize": "cpu", "normalize": "cpu"}, "wrong"),
    (PLAIN, {"read": "cpu", "decode": "mixed", "resize": "gpu"}, "incomplete"),
    (PLAIN, {"decode": "mixed"}, "incomplete"),
    (PLAIN, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "fast"}, "wrong"),
    (PLAIN, {"training": "gpu", "optimizer": "gpu"}, "empty"),
    (PLAIN, {}, "empty"),
    (ON_CPU, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}, "wrong"),
    (LAB, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}, "incomplete"),
    (PLAIN, {"cpu": ["reader", "decoder"], "gpu": ["resize", "normalize"]}, "wrong"),
    (COLOUR, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu"}, "incomplete"),
    (PLAIN, {"read": "cpu", "decode": "mixed", "resize": "gpu", "normalize": "gpu", "output": "cpu"}, "wrong"),
]


def judge(facts, table, **params):
    """What the check says about a table and a graph."""
    rows = [[key, value if isinstance(value, list) else [value]] for key, value in table.items()]
    stated = {"status": "present", "shown": "", "rows": rows}
    evidence = evidence_with("placement_table", observations=stated, clean_room=a_clean_room(graph=facts))
    return judged(CHECK, evidence, **params)


@pytest.mark.parametrize(("facts", "table"), GOOD)
def test_right_tables_pass_whatever_their_words(facts, table):
    """Names of stages and of devices are understood as people write them."""
    result = judge(facts, table)
    assert (result.outcome, result.code) == (Outcome.PASSED, "placement.ok"), result.feedback
    assert_brief(result)


@pytest.mark.parametrize(("facts", "table", "reason"), BAD)
def test_wrong_and_incomplete_tables_fail(facts, table, reason):
    """An entry that contradicts the graph, and a stage without an entry, are told apart."""
    result = judge(facts, table)
    assert (result.outcome, result.code) == (Outcome.FAILED, f"placement.{reason}"), result.feedback
    assert_brief(result)


def test_a_wrong_entry_is_named_with_the_learners_line_and_earns_the_rest():
    """The feedback leads to the operator; the other stages still earn their share."""
    result = judge(PLAIN, {"read": "cpu", "decode": "cpu", "resize": "gpu", "normalize": "gpu"})
    assert (
        result.parts.outcome
        == "In `placement` `decode` says cpu, but fn.decoders.image in submission.py, line 11 is mixed."
    )
    assert result.parts.next.code == '"decode": "mixed"'
    assert result.score == pytest.approx(0.75)


def test_further_wrong_entries_are_advice_each():
    """The first one is the outcome; each of the others is told with what to write."""
    result = judge(PLAIN, {"read": "gpu", "decode": "fast", "resize": "gpu", "normalize": "cpu", "training": "gpu"})
    assert result.parts.outcome.startswith("In `placement` `read` says gpu, but fn.readers.file")
    told = [(advice.code, advice.next) for advice in result.parts.advice]
    assert told == [
        ("advice.wrong_entry", 'Write "decode": "mixed".'),
        ("advice.wrong_entry", 'Write "normalize": "gpu".'),
        ("advice.not_in_graph", ""),
    ]
    assert result.parts.numbers == {"stages": 4, "right": 1, "wrong": 3}


def test_keys_of_many_words_are_cut():
    """A learner's sentence does not become ours."""
    keys = [
        "decode " + "all of these photos and pictures " * 5,
        *(f"training of number {number}" for number in range(9)),
    ]
    result = judge(PLAIN, dict.fromkeys(keys, "cpu"))
    assert result.code == "placement.wrong"
    assert_brief(result)


def test_gpu_for_a_mixed_decoder_passes_where_the_lab_allows_it():
    """`gpu_for_mixed` decides what a learner's `gpu` for the decoder is worth."""
    table = {"read": "cpu", "decode": "gpu", "resize": "gpu", "normalize": "gpu"}
    assert judge(PLAIN, table, gpu_for_mixed=True).outcome is Outcome.PASSED
    assert judge(PLAIN, table).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "source",
    [
        "placement = {'read': 'cpu', 'decode': 'mixed', 'resize': 'gpu', 'normalize': 'gpu'}",
        "placement = [('read', 'cpu'), ('decode', 'mixed'), ('resize', 'gpu'), ('normalize', 'gpu')]",
        "placement = [{'stage': n, 'device': d} for n, d in "
        "(('read', 'cpu'), ('decode', 'mixed'), ('resize', 'gpu'), ('normalize', 'gpu'))]",
        "placement = '- read: cpu\\n- decode: mixed\\n- resize -> gpu\\n- normalize = gpu'",
        "import collections\nplacement = collections.OrderedDict(read='cpu', decode='mixed', resize='gpu', "
        "normalize='gpu')",
        "import enum\nclass D(str, enum.Enum):\n    CPU = 'cpu'\n    GPU = 'gpu'\n    MIXED = 'mixed'\n"
        "placement = dict(read=D.CPU, decode=D.MIXED, resize=D.GPU, normalize=D.GPU)",
    ],
)
def test_tables_of_many_types_are_read(learner, source):
    """Dicts, pairs, records and texts all become a table."""
    evidence = learner.evidence(source, "placement_table")
    evidence = evidence.model_copy(update={"clean_room": a_clean_room(graph=PLAIN)})
    assert judged(CHECK, evidence).code == "placement.ok"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("other = 1", "placement.missing"),
        ("placement = 7", "placement.unreadable"),
        ("class E:\n    def __getattribute__(self, n): 1/0\n    def __str__(self): 1/0\nplacement = E()",
         "placement.unreadable"),
        ("class K:\n    def __str__(self): raise SystemExit\n    def __hash__(self): return 1\nplacement = {K(): K()}",
         "placement.empty"),
    ],
)  # fmt: skip
def test_what_is_no_table_fails_without_an_error(learner, source, code):
    """A missing name, other types and objects that raise are the learner's to mend."""
    result = judged(CHECK, learner.evidence(source, "placement_table"))
    assert (result.outcome, result.code) == (Outcome.FAILED, code)
    assert_brief(result)


def test_another_name_is_read_where_the_lab_says_so(learner):
    """The variable's name is a parameter that reaches the probe."""
    params = {"placement_table": {"name": "where_it_runs"}}
    evidence = learner.evidence("where_it_runs = {'decode': 'mixed'}", "placement_table", params=params)
    evidence = evidence.model_copy(update={"clean_room": a_clean_room(graph=PLAIN)})
    assert judged(CHECK, evidence, name="where_it_runs").code == "placement.incomplete"


@pytest.mark.parametrize(
    ("changes", "code", "score"),
    [({}, "placement.missing", 0.0), ({"ran": "raised"}, "run.not_reached", 0.0),
     ({"ran": "raised", "needs_gpu": "a kernel"}, "run.not_reached", None)],
)  # fmt: skip
def test_a_table_that_is_missing_is_named_as_the_lab_names_it(changes, code, score):
    """Where the code stopped before, that is told by the run."""
    evidence = evidence_with(
        "placement_table",
        observations={"status": "missing", "shown": "", "rows": []},
        discovery=a_discovery(**changes),
    )
    result = judged(CHECK, evidence, name="where_it_runs")
    assert (result.code, result.score) == (code, score)
    assert_brief(result)
    if code == "placement.missing":
        assert result.parts.outcome == "`where_it_runs` is not defined."


def test_without_a_graph_nothing_is_decided():
    """A graph that could not be read is no fault of the table."""
    room = CleanRoom(pipeline="dali_iter", problem="operator_not_allowed", problem_text="fn.python_function")
    evidence = evidence_with(
        "placement_table", observations={"status": "present", "shown": "", "rows": []}, clean_room=room
    )
    assert judged(CHECK, evidence).outcome is Outcome.UNVERIFIED
    nothing = evidence_with("placement_table", discovery=a_discovery(pipelines=()))
    assert judged(CHECK, nothing).code == "placement.no_pipeline"
