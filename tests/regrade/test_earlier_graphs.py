"""Evidence from when graphs were judged by the pixels that they delivered still loads, is judged and is shown."""

import json
import random

import pytest

from checks.registry import Registry
from grader_service import verdicts
from grader_service.judging import judge
from grader_service.labs.catalogue import load_lab
from grader_service.model.evidence import Evidence
from grader_service.model.submission import Submission
from tests.regrade.kinds import evidence_of
from tests.regrade.stored import LAB
from tests.report.page import staff_page

SUBMISSION = Submission(submission_id="s:1", lab=LAB, filename="submission.ipynb", sha256="a1" * 32, size_bytes=1)


def stored(kind, problem):
    """A document as it was stored then: a graph was timed, and what is known of it beside is its pixels."""
    document = json.loads(evidence_of(kind, 1, "r:1", random.Random(7)).model_dump_json())
    del document["measurement"]["graph"]
    document["measurement"]["content"]["problem"] = problem
    return json.dumps(document)


def graded(kind, problem):
    """The result on the ratio, and the verdict, from the stored document."""
    evidence = Evidence.model_validate_json(stored(kind, problem))
    assert (evidence.measurement.graph, evidence.measurement.tier) == (None, "A")
    registry = Registry()
    lab = load_lab(LAB, registry)
    verdict = verdicts.compose(SUBMISSION, lab, lab.steps, judge(evidence, lab.steps, registry), evidence)
    return next(check for check in verdict.checks if check.id == "throughput_ratio"), verdict


@pytest.mark.parametrize(
    "problem", ["repeated_images", "partial_decode", "rendered", "small_area", "not_identified", "colours_changed"]
)
@pytest.mark.parametrize("kind", ["above", "below"])
def test_a_graph_that_was_doubted_by_its_pixels_is_not_decided(kind, problem):
    """Whatever its ratio is: the pixels of a graph neither pass nor fail anybody any more."""
    result, verdict = graded(kind, problem)
    assert (result.outcome, result.code, result.tier) == ("inconclusive", "ratio.not_examined", "A")
    assert result.score is None
    assert result.details["content"]["problem"] == problem
    assert verdict.status == "inconclusive"
    text = staff_page(verdict).text
    assert "This ratio does not count" in text
    assert "What your graph does" not in text


@pytest.mark.parametrize(("kind", "code"), [("above", "ratio.ok"), ("below", "ratio.too_low")])
def test_a_graph_whose_pixels_were_in_order_keeps_its_result(kind, code):
    """It is judged by its blocks, as before."""
    result, verdict = graded(kind, None)
    assert (result.code, result.tier) == (code, "A")
    assert "This ratio does not count" not in staff_page(verdict).text
