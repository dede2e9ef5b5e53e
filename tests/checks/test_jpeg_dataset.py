"""The check `jpeg_dataset` on evidence of every kind."""

from functools import partial

import pytest

from checks.jpeg_dataset.check import jpeg_dataset
from grader_service.model.discovery import Claim, PathClaim
from grader_service.model.evidence import RejectedExample, Scan
from grader_service.model.verdict import Outcome
from tests.checks.judged import judged
from tests.factories import a_discovery, a_scan, an_evidence

judge = partial(judged, jpeg_dataset)


def test_a_full_data_set_passes():
    """160 distinct images, a loader and a positive figure are all that is asked."""
    result = judge(an_evidence())
    assert (result.outcome, result.code, result.score) == (Outcome.PASSED, "jpeg.ok", 1.0)


@pytest.mark.parametrize(("distinct", "outcome"), [(99, Outcome.FAILED), (100, Outcome.PASSED)])
def test_the_threshold_is_inclusive(distinct, outcome):
    """Exactly 100 is enough, 99 is not."""
    assert judge(an_evidence(scan=a_scan(distinct=distinct))).outcome is outcome


def test_the_threshold_comes_from_the_lab():
    """Another lab may ask for more."""
    assert judge(an_evidence(), min_images=200).code == "jpeg.too_few"


def test_a_lab_may_want_the_data_alone():
    """Without a baseline neither a loader nor a figure is asked for, and too few images still fail."""
    discovery = a_discovery(pytorch_throughput=Claim(status="missing"), loaders=())
    result = judge(an_evidence(discovery=discovery), baseline=False)
    assert (result.outcome, "DataLoader" in result.feedback) == (Outcome.PASSED, False)
    assert judge(an_evidence(discovery=discovery)).code == "jpeg.pytorch_throughput_missing"
    few = an_evidence(discovery=discovery, scan=a_scan(distinct=99))
    assert judge(few, baseline=False).code == "jpeg.too_few"


def test_what_was_not_counted_is_explained():
    """The feedback names reasons, counts and an example."""
    scan = a_scan(
        distinct=40, rejected={"copy": 100, "not_jpeg": 3}, examples=(RejectedExample(path="a/b.jpg", reason="copy"),)
    )
    parts = judge(an_evidence(scan=scan)).parts
    assert parts.outcome == "`dataset_dir` (data) holds 40 distinct JPEG files, 60 too few."
    assert parts.seen == (
        "Not counted: 100 copies of a file, byte for byte; 3 that are no JPEG, whatever their names say "
        "(such as a/b.jpg)."
    )
    assert parts.next.text == "Add 60 more, each another picture: copies count once."
    assert parts.numbers == {"images": 40, "needed": 100, "lacking": 60}


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("missing", "jpeg.not_found"),
        ("not_a_directory", "jpeg.not_a_directory"),
        ("outside", "jpeg.outside"),
        ("unreadable", "jpeg.unreadable"),
    ],
)
def test_a_bad_folder_is_named(problem, code):
    """Each way in which `dataset_dir` can be wrong has its code and repeats what stood there."""
    result = judge(an_evidence(scan=a_scan(problem=problem, distinct=0)))
    assert result.code == code
    assert "data" in result.feedback


def test_missing_names_fail_with_what_they_should_hold():
    """The feedback names the variable and what belongs into it."""
    for name in ("dataset_dir", "pytorch_throughput"):
        model = PathClaim if name == "dataset_dir" else Claim
        result = judge(an_evidence(discovery=a_discovery(**{name: model(status="missing")})))
        assert result.code == f"jpeg.{name}_missing"
        assert f"`{name}` is not defined. It should hold" in result.feedback


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"status": "present", "value": 0.0, "shown": "0"}, "not_positive"),
        ({"status": "present", "value": -3.0, "shown": "-3"}, "not_positive"),
        ({"status": "unreadable", "shown": "'fast'"}, "invalid"),
    ],
)
def test_a_figure_must_be_a_positive_number(claim, problem):
    """The size of `pytorch_throughput` decides nothing; a claim that is no number is said to be none, and is not 0."""
    result = judge(an_evidence(discovery=a_discovery(pytorch_throughput=Claim(**claim))))
    assert result.code == f"jpeg.pytorch_throughput_{problem}"
    assert claim["shown"] in result.feedback


def test_a_baseline_needs_a_loader_or_a_factory():
    """Without a DataLoader there is no baseline; a factory counts."""
    assert judge(an_evidence(discovery=a_discovery(loaders=()))).code == "jpeg.no_loader"
    discovery = a_discovery(loaders=(), factories=("build_pytorch_loader",))
    assert judge(an_evidence(discovery=discovery)).outcome is Outcome.PASSED


@pytest.mark.parametrize(("fact", "words"), [("flat", "one colour only"), ("one_picture", "like one picture")])
def test_images_that_are_much_the_same_are_advice(fact, words):
    """Said and flagged where most images are so, and never a failure; half of them are not most."""
    for baseline in (True, False):
        result = judge(an_evidence(scan=a_scan(**{fact: 81})), baseline=baseline)
        assert (result.outcome, result.code, result.details["flags"]) == (Outcome.PASSED, "jpeg.ok", [fact])
        assert f"81 of your images {'have' if fact == 'flat' else 'look'}" in result.feedback
        assert words in result.feedback
    half = judge(an_evidence(scan=a_scan(**{fact: 80})))
    assert "flags" not in half.details
    assert words not in half.feedback
    few = judge(an_evidence(scan=a_scan(distinct=40, **{fact: 40})))
    assert (few.code, few.details["flags"]) == ("jpeg.too_few", [fact])


def test_scans_from_before_are_read():
    """Evidence that does not say what images look like has no advice."""
    stored = a_scan().model_dump(exclude={"flat", "one_picture"})
    assert "flags" not in judge(an_evidence(scan=Scan.model_validate(stored))).details
