"""`shuffle_determinism`: the order of files over epochs, builds and pipelines."""

import pytest

from checks.observations.carried import Line
from checks.observations.order import Order
from checks.shuffle_determinism.check import shuffle_determinism
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import NORMALISE, RESIZE, Control, Controls
from tests.checks.graphs.graphs import bare, iterator, judged_alone

SEED = ", seed=42"
PADDED = ", random_shuffle=True, pad_last_batch=True"
IN_PYTHON = """
import glob
paths = glob.glob(dataset_dir + "/**/*.jpg", recursive=True)
random.Random(3).shuffle(paths)

@pipeline_def(batch_size=4, num_threads=2, device_id=0)
def listed():
    jpegs, labels = fn.readers.file(files=paths)
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=[64, 64]), labels.gpu()

train_pipe = listed()
"""
CONTROLS = Controls(
    shuffle_determinism,
    "shuffle",
    [
        Control("shuffled", bare(RESIZE, NORMALISE), "ok"),
        Control("shuffled and padded, in an iterator", iterator(RESIZE, reader=PADDED), "ok"),
        Control("shuffled after every epoch", bare(RESIZE, reader=", shuffle_after_epoch=True"), "ok"),
        Control("by a small buffer", bare(RESIZE, reader=", random_shuffle=True, initial_fill=2"), "ok"),
        Control("a shard, shuffled", bare(RESIZE, reader=PADDED + ", shard_id=1, num_shards=2"), "ok"),
        Control("seeded", bare(RESIZE, options=SEED), "ok", {"deterministic": True}),
        Control("in the files' order, as wanted", bare(RESIZE, reader=""), "ok",
                {"shuffle": False, "deterministic": True}),
        Control("in the files' order and padded, as wanted", iterator(RESIZE, reader=", pad_last_batch=True"), "ok",
                {"shuffle": False}),
        Control("with a pipeline for validation", bare(RESIZE) + bare(RESIZE, name="val", reader=""), "ok",
                {"validation": "required"}),
        Control("not shuffled", bare(RESIZE, NORMALISE, reader=""), "off"),
        Control("a shard, not shuffled", bare(RESIZE, reader=", shard_id=1, num_shards=2"), "off"),
        Control("shuffled once, by Python", IN_PYTHON, "off"),
        Control("shuffled where it is not wanted", bare(RESIZE), "on", {"shuffle": False}),
        Control("shuffled after epochs where it is not wanted", bare(RESIZE, reader=", shuffle_after_epoch=True"), "on",
                {"shuffle": False}),
        Control("no seed", bare(RESIZE), "not_reproducible", {"deterministic": True}),
        Control("validation shuffled as well", bare(RESIZE) + bare(RESIZE, name="val"), "validation_shuffled"),
        Control("no validation", bare(RESIZE), "no_validation", {"validation": "required"}),
    ],
    further=[
        # Without labels or brightness there is no order to look at.
        Control("images that cannot be told apart", bare(RESIZE, "images = images * 0", returned="images, labels * 0"),
                "no_numbers", outcome=Outcome.UNVERIFIED),
    ],
)  # fmt: skip


def test_the_same_shuffled_order_in_both_epochs_fails(workshop):
    """No reader of DALI does it; a graph that starts again after every epoch would."""
    observation = workshop.evidence(bare(RESIZE), shuffle_determinism).probe("epoch_order").observations
    (graph,) = observation["graphs"]
    once = [5, 2, 9, 0, 12, 3, 7, 11, 1, 8, 4, 10, 6] * 4
    streams = [[once[start : start + 4] for start in range(0, 40, 4)]] * 2
    forged = observation | {"graphs": [graph | {"streams": streams}]}
    assert judged_alone(shuffle_determinism, forged).code == "shuffle.same_each_epoch"


def test_a_shard_of_very_many_is_not_counted_through(workshop):
    """The number of shards is the learner's own, and costs the judge neither time nor memory."""
    observation = workshop.evidence(bare(RESIZE), shuffle_determinism).probe("epoch_order").observations
    (graph,) = observation["graphs"]
    many = observation | {"graphs": [graph | {"readers": [{"random_shuffle": True, "num_shards": 2**62}]}]}
    assert judged_alone(shuffle_determinism, many).code == "shuffle.same_each_epoch"


def test_observation_holds_what_the_probe_says(workshop):
    """The reader's arguments arrive as the learner wrote them."""
    source = bare(RESIZE, reader=PADDED + ", shard_id=1, num_shards=2")
    order = Order.model_validate(workshop.evidence(source, shuffle_determinism).probe("epoch_order").observations)
    graph = order.graphs[0]
    assert (graph.shard_count, graph.number("shard_id", 0)) == (2, 1)
    assert graph.flag("pad_last_batch")
    assert [graph.reader(17).size(shard) for shard in range(2)] == [8, 9]
    assert graph.place is not None
    assert graph.place.where.startswith("submission.py, line ")


@pytest.mark.parametrize(
    ("file", "line", "where"),
    [
        ("data.py", 3, "data.py, line 3"),
        ("cell_012.py", 3, "cell 12, line 3"),
        ("cell_000.py", 3, "cell_000.py, line 3"),
        ("data.py", None, None),
        ("data.py", 0, None),
        ("data.py", 2**63, None),
        ("", 3, None),
    ],
)
def test_a_line_is_a_place_of_a_module_or_a_cell(file, line, where):
    """Where the graph says nothing that can be a line, there is no place."""
    place = Line(file=file, line=line).place
    assert (place.where if place is not None else None) == where


def test_a_validation_pipeline_that_was_not_seen_is_not_called_unshuffled(workshop):
    """Only what came says whether it is shuffled."""
    source = bare(RESIZE) + bare(RESIZE, name="val", reader="")
    observation = workshop.evidence(source, shuffle_determinism).probe("epoch_order").observations
    assert "`val_pipe` does not shuffle." in judged_alone(shuffle_determinism, observation).feedback
    train, val = sorted(observation["graphs"], key=lambda graph: graph["name"])
    unseen = observation | {"graphs": [train, val | {"streams": [None]}]}
    assert "val_pipe" not in judged_alone(shuffle_determinism, unseen).feedback
