"""What checks say when a learner's code stopped before they could look, or lacks a name."""

import pytest

from checks.api import absent, missing
from checks.cuda_batch.check import cuda_batch
from checks.jpeg_dataset.check import jpeg_dataset
from checks.reflections.check import reflections
from checks.throughput_ratio.check import throughput_ratio
from grader_service.model.discovery import Claim, FirstBatch, LearnerException, NameFacts, PathClaim, TextList
from grader_service.model.evidence import Ending
from tests.checks.judged import judged
from tests.factories import a_discovery, an_evidence, ended

CHECKS = {"jpeg": jpeg_dataset, "batch": cuda_batch, "ratio": throughput_ratio, "reflections": reflections}
CASES = {
    "folder": (jpeg_dataset, {"dataset_dir": PathClaim(status="missing")}),
    "rate": (jpeg_dataset, {"pytorch_throughput": Claim(status="missing")}),
    "batch": (cuda_batch, {"first_batch": FirstBatch(status="missing")}),
    "pipeline": (throughput_ratio, {"pipelines": ()}),
    "list": (reflections, {"where_dali_wins": TextList(status="missing")}),
}


@pytest.mark.parametrize(("check", "changes"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("ran", ["raised", "exited", "timed_out", "stalled"])
def test_what_was_not_reached_is_said_in_two_words(check, changes, ran):
    """What stopped the code is told once, of the run; here nothing is repeated, and nothing is earned."""
    exception = LearnerException(type="NameError", message="name 'fn' is not defined")
    result = judged(check, an_evidence(discovery=a_discovery(ran=ran, exception=exception, **changes)))
    assert (result.outcome, result.code, result.score) == ("skipped", "run.not_reached", 0.0)
    assert result.feedback == "Not reached."


@pytest.mark.parametrize(("check", "changes"), CASES.values(), ids=CASES)
def test_a_rehearsal_that_needs_a_gpu_is_not_a_failure(check, changes):
    """What is missing because it cannot be rehearsed is left open."""
    exception = LearnerException(type="RuntimeError", message="Found no NVIDIA driver")
    discovery = a_discovery(ran="raised", exception=exception, needs_gpu="Found no NVIDIA driver", **changes)
    result = judged(check, an_evidence(discovery=discovery))
    assert (result.outcome, result.code, result.score) == ("skipped", "run.not_reached", None)


@pytest.mark.parametrize(("check", "changes"), CASES.values(), ids=CASES)
def test_after_a_run_to_the_end_what_is_missing_fails(check, changes):
    """With what is wanted and what to do."""
    result = judged(check, an_evidence(discovery=a_discovery(**changes)))
    assert (result.outcome, result.score) == ("failed", 0.0)
    assert result.parts.wanted
    assert result.parts.next.text


@pytest.mark.parametrize("ending", [Ending.TIMED_OUT, Ending.OUT_OF_MEMORY, Ending.EXITED, Ending.PROTOCOL_VIOLATION])
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_no_evidence_is_never_a_pass(check, ending):
    """Of a pod that ended without a word nothing was reached."""
    result = judged(check, ended(ending))
    assert (result.outcome, result.code, result.score) == ("skipped", "run.not_reached", 0.0)


@pytest.mark.parametrize(
    ("changes", "check", "names", "line"),
    [
        (
            {"dataset_dir": PathClaim(status="missing")},
            jpeg_dataset,
            [NameFacts(name="data_root", kind="folder", count=128)],
            "dataset_dir = data_root",
        ),
        (
            {"first_batch": FirstBatch(status="missing")},
            cuda_batch,
            [NameFacts(name="batch0", kind="batch", count=32), NameFacts(name="loss", kind="number")],
            "first_batch = batch0",
        ),
        (
            {"where_dali_wins": TextList(status="missing")},
            reflections,
            [NameFacts(name="dali_wins", kind="texts", count=3), NameFacts(name="classes", kind="texts", count=10)],
            "where_dali_wins = dali_wins",
        ),
    ],
)
def test_a_near_miss_is_named_with_the_line_to_write(changes, check, names, line):
    """A variable that holds what is asked for under another name."""
    result = judged(check, an_evidence(discovery=a_discovery(names=tuple(names), **changes)))
    assert result.parts.next.code == line
    assert names[0].name in result.parts.seen


def test_what_is_unlike_is_not_guessed():
    """Ten class names are no reflections, and of two folders neither is meant."""
    lists = a_discovery(
        where_dali_wins=TextList(status="missing"), names=(NameFacts(name="classes", kind="texts", count=10),)
    )
    assert judged(reflections, an_evidence(discovery=lists)).parts.seen == ""
    folders = a_discovery(
        dataset_dir=PathClaim(status="missing"),
        names=(NameFacts(name="train", kind="folder", count=99), NameFacts(name="val", kind="folder", count=9)),
    )
    assert judged(jpeg_dataset, an_evidence(discovery=folders)).parts.seen == ""


def test_a_name_that_a_lab_made_too_long_is_cut():
    """It is a parameter of many checks; nothing raises."""
    result = missing(absent(a_discovery(), "model" * 100), "your network", code="missing")
    assert (result.outcome, result.code) == ("failed", "missing")
