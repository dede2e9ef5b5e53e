"""Models refuse what the contract excludes and read back what they wrote."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from checks.registry import Registry
from grader_service.errors import UsageError
from grader_service.labs.catalogue import load_lab
from grader_service.model.base import Code, LongText, neutralise
from grader_service.model.discovery import Claim
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec, MeasurementPlan
from grader_service.model.submission import Submission
from tests.factories import an_evidence


def test_evidence_reads_back_what_it_wrote():
    """JSON and back is the same value."""
    evidence = an_evidence()
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence


SUBMISSION = {"lab": "l", "filename": "f.py", "sha256": "0" * 64, "size_bytes": 1}


@pytest.mark.parametrize(
    ("kind", "value", "place"),
    [
        *((Claim, {"status": "present", "value": value}, "value") for value in (math.nan, math.inf, -math.inf)),
        (Claim, {"status": "present", "score": 100}, "score"),
        *((Code, text, None) for text in ("ok", "Jpeg.ok", "jpeg.", "jpeg.too few", "a" * 90 + ".b", "")),
        *(
            (Submission, SUBMISSION | {"submission_id": value}, "submission_id")
            for value in ("", "a b", "x" * 129, "../x", "ä")
        ),
        (LongText, "x" * 8193, None),
    ],
)
def test_what_the_contract_excludes_is_refused(kind, value, place):
    """Numbers are finite, fields those of the schema, codes dotted lower-case words, and texts bounded.

    Ids of submissions are 1 to 128 of `A-Za-z0-9._:-`.
    """
    with pytest.raises(ValidationError) as refusal:
        TypeAdapter(kind).validate_python(value)
    assert [error["loc"] for error in refusal.value.errors()] == [(place,) if place else ()]


@given(st.text(max_size=300))
def test_neutralised_text_cannot_steer_a_terminal(text):
    """No control character, override or surrogate is left, and the length stays."""
    safe = neutralise(text)
    assert len(safe) == len(text)
    assert not any(ord(char) < 32 and char not in "\t\n" for char in safe)
    assert not set(safe) & set("\u202e\u2066\x1b\x7f")
    safe.encode()


def test_the_lab_holds_the_contracts_numbers():
    """Thresholds are data, and these are the contract's."""
    lab = load_lab("dali-pipelines", Registry())
    params = {check.id: dict(check.params) for step in lab.steps for check in step.checks}
    assert [step.id for step in lab.steps] == ["baseline", "pipeline", "benchmark", "reflection"]
    assert params["jpeg_dataset"] == {"min_images": 100}
    assert params["cuda_batch"]["min_batch"] == 16
    assert params["throughput_ratio"] == {"threshold": 1.1}
    assert params["reflections"] == {"min_wins": 3, "min_loses": 2}


def test_selecting_an_unknown_step_lists_the_known_ones():
    """A typo is answered with the lab's steps."""
    lab = load_lab("dali-pipelines", Registry())
    said = r'has no step pipelines; did you mean "pipeline"\? Its steps are: baseline, pipeline, benchmark, reflection'
    with pytest.raises(UsageError, match=said):
        lab.selected(("pipelines",))


def test_steps_keep_the_labs_order():
    """Whatever order was asked for."""
    lab = load_lab("dali-pipelines", Registry())
    assert [step.id for step in lab.selected(("reflection", "baseline"))] == ["baseline", "reflection"]


def test_ids_must_be_unique():
    """A step or check that stands twice is refused by name."""
    lab = load_lab("dali-pipelines", Registry())
    document = json.loads(lab.model_dump_json())
    document["steps"].append(document["steps"][0])
    with pytest.raises(ValidationError, match="baseline stands more than once"):
        LabSpec.model_validate(document)


@pytest.mark.parametrize(
    ("values", "words"),
    [({"looks": (4, 4)}, "increase strictly"), ({"look_share": 0.8, "clear_share": 0.3}, "add up to at most 1")],
)
def test_a_plan_is_refused_whose_looks_go_back_or_whose_parts_of_the_error_exceed_it(values, words):
    """In the words of what is wrong."""
    with pytest.raises(ValidationError, match=words):
        MeasurementPlan(**values)
