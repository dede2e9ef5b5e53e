"""`epoch_coverage`: what the last batch of an epoch holds decides whether every file comes exactly once."""

from checks.epoch_coverage.check import epoch_coverage
from grader_service.model.verdict import Outcome
from tests.checks.graphs.control_tests import test_control, test_figures_in_the_docstring  # noqa: F401 - of CONTROLS
from tests.checks.graphs.controls import CONDITIONS, CROP, FLIP, NORMALISE, RESIZE, TRIVIAL, Control, Controls
from tests.checks.graphs.graphs import bare, iterator

PADDED = ", random_shuffle=True, pad_last_batch=True"
BY_NAME = 'reader_name="Reader", auto_reset=True'
CLASSIFICATION = """
train_iter = DALIClassificationIterator(train_pipeline(), reader_name="Reader", auto_reset=True,
                                        last_batch_policy=LastBatchPolicy.PARTIAL)
loaders = {"train": train_iter}
"""


def policy(name, more=BY_NAME):
    """Arguments of an iterator with this policy."""
    return f"{more}, last_batch_policy=LastBatchPolicy.{name}"


CONTROLS = Controls(
    epoch_coverage,
    "epoch",
    [
        Control("partial and padded", iterator(RESIZE, NORMALISE, reader=PADDED), "ok"),
        Control("partial, in the files' order", iterator(RESIZE, reader=""), "ok"),
        Control("partial by size", iterator(RESIZE, reader=PADDED,
                iterate=policy("PARTIAL", "size=10, last_batch_padded=True")), "ok"),
        Control("one-hot labels, told apart by their images",
                iterator(RESIZE, NORMALISE, reader=PADDED, returned="images, fn.one_hot(labels, num_classes=2)"), "ok"),
        Control("two shards, padded", iterator(RESIZE, reader=PADDED + ", shard_id=0, num_shards=2"), "ok"),
        Control("automatic augmentation", iterator(CROP, TRIVIAL, NORMALISE, reader=PADDED, options=CONDITIONS), "ok"),
        Control("filled where repeats are allowed", iterator(RESIZE, iterate=policy("FILL")), "ok",
                {"policy": "covers"}),
        Control("dropped where that is wanted", iterator(RESIZE, reader=PADDED, iterate=policy("DROP")), "ok",
                {"policy": "drop"}),
        Control("filled by default", iterator(RESIZE, FLIP, iterate=BY_NAME), "repeats"),
        Control("filled by padding", iterator(RESIZE, reader=PADDED, iterate=BY_NAME), "repeats"),
        Control("dropped", iterator(RESIZE, reader=PADDED, iterate=policy("DROP")), "drops_files"),
        Control("dropped where files must be covered", iterator(RESIZE, iterate=policy("DROP")), "drops_files",
                {"policy": "covers"}),
        Control("partial and shuffled without padding", iterator(RESIZE, NORMALISE, options=", seed=4"), "not_padded"),
        Control("endless", iterator(RESIZE, iterate="auto_reset=True"), "endless"),
        Control("a size that is not the reader's", iterator(RESIZE, iterate=policy("PARTIAL", "size=8")), "wrong_size"),
        Control("partial wanted, filled", iterator(RESIZE, reader=PADDED, iterate=BY_NAME), "wrong_policy",
                {"policy": "partial"}),
        Control("two shards, filled", iterator(RESIZE, reader=", shard_id=1, num_shards=2", iterate=BY_NAME),
                "repeats"),
    ],
    further=[
        Control("of the class for classification, in a dictionary", bare(RESIZE, reader=PADDED) + CLASSIFICATION, "ok"),
        Control("in a list alone", iterator(RESIZE, reader=PADDED) + "loaders = [train_iter]\ndel train_iter\n", "ok"),
        # Where an epoch ends is not known without one, which is no failure.
        Control("no iterator", bare(RESIZE), "no_iterator", outcome=Outcome.UNVERIFIED),
    ],
)  # fmt: skip


def test_feedback_counts_images(workshop):
    """The learner hears how many images an epoch had, and what to set."""
    result = workshop.judge(iterator(RESIZE, FLIP, iterate=BY_NAME), epoch_coverage)
    assert "13 numbered files in batches of 4: 16 and " in result.parts.seen
    assert result.parts.numbers["files"] == 13
    assert result.parts.next is not None
    assert "last_batch_policy=LastBatchPolicy.PARTIAL" in result.parts.next.code
