"""`shard_coverage`: what the learner wrote about shards, and what the shards then read."""

from checks.shard_coverage.check import shard_coverage
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CROP, FLIP, RESIZE, Control, Controls
from tests.checks.graphs.graphs import pipeline

SHARDED = ", random_shuffle=True, shard_id=rank, num_shards=world, pad_last_batch=True"
RANKS = "rank=0, world=1"


def ranks(calls, *steps, reader=SHARDED, iterate="", arguments=RANKS):
    """One pipeline, built as these calls say, in a list; in iterators where `iterate` says how."""
    made = ", ".join(f"train_pipeline({call})" for call in calls)
    source = pipeline(*(steps or (RESIZE,)), reader=reader, arguments=arguments) + f"pipes = [{made}]\n"
    if not iterate:
        return source
    return source + f'iterators = [DALIGenericIterator(pipe, ["data", "label"], {iterate}) for pipe in pipes]\n'


TWO = ("0, 2", "1, 2")
PLAIN = SHARDED.replace(", pad_last_batch=True", "")
PARTIAL = 'reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL'
CONTROLS = Controls(
    shard_coverage,
    "shards",
    [
        Control("one pipeline per rank", ranks(TWO), "ok"),
        Control("in iterators", ranks(TWO, CROP, FLIP, iterate=PARTIAL), "ok"),
        Control("not padded, but the iterators are told the reader", ranks(TWO, reader=PLAIN, iterate=PARTIAL), "ok"),
        Control("three ranks", ranks(("0, 3", "1, 3", "2, 3")), "ok", {"shards": 3}),
        Control("every rank sticks to its shard", ranks(TWO, reader=SHARDED + ", stick_to_shard=True"), "ok",
                {"stick_to_shard": True}),
        Control("one pipeline, where one is enough", ranks(("1, 2",)), "ok", {"pipelines": "one"}),
        Control("no shards", ranks(("", "")), "not_sharded"),
        Control("a shard's number without a count", ranks(TWO, reader=", shard_id=0", arguments="rank, world"),
                "not_sharded"),
        Control("shard 0 on every rank", ranks(TWO, reader=", shard_id=0, num_shards=world, pad_last_batch=True"),
                "same_shard"),
        Control("no shard's number", ranks(TWO, reader=", num_shards=world, pad_last_batch=True"), "same_shard"),
        Control("only the first rank", ranks(("0, 2",)), "missing"),
        Control("another number of shards", ranks(("0, 3", "1, 3", "2, 3")), "wrong_count"),
        Control("neither padded nor told the reader", ranks(TWO, reader=PLAIN), "unequal_steps"),
        Control("sticks where it must rotate", ranks(TWO, reader=SHARDED + ", stick_to_shard=True"), "sticks",
                {"stick_to_shard": False}),
        Control("settings of ranks differ", ranks(TWO, reader=SHARDED.replace("=True", "=rank == 0")),
                "mixed_settings"),
    ],
    further=[
        Control("unequal steps, where a lab does not look at them", ranks(TWO, reader=PLAIN), "ok",
                {"equal_steps": False}),
        Control("as many pipelines as are carried, two of one shard", ranks(("0, 4", "1, 4", "2, 4", "2, 4")),
                "same_shard", {"shards": 4}),
        # A fifth pipeline may have read the missing shard.
        Control("as many pipelines as are carried, two of no shard", ranks(("0, 3", "1, 3", "", "")), "too_many",
                {"shards": 3}, Outcome.UNVERIFIED),
    ],
)  # fmt: skip


def test_what_the_grader_set_is_said(workshop):
    """A pass of one pipeline does not claim that the learner wrote the other shards."""
    result = workshop.judge(ranks(("1, 2",)), shard_coverage, pipelines="one")
    assert "You built shard 1; the grader set shard_id for the others." in result.feedback
