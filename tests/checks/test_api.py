"""What a check answers."""

import pytest
from pydantic import ValidationError

from checks.api import CheckResult
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome

FAILED = {"outcome": Outcome.FAILED, "code": "size.too_small", "score": 0.0}


def test_a_text_is_taken_in_place_of_parts():
    """Checks that were written before feedback had parts go on working."""
    result = CheckResult(**FAILED, feedback="It is small. Make it larger.")
    assert result.parts == Feedback(outcome="It is small. Make it larger.")
    assert result.feedback == "It is small. Make it larger."


def test_parts_are_not_replaced_and_unknown_fields_are_refused():
    """A text beside parts is a mistake of the author's."""
    with pytest.raises(ValidationError, match="feedback"):
        CheckResult(**FAILED, feedback="It is small.", parts=Feedback(outcome="It is small."))
    with pytest.raises(ValidationError, match="parts"):
        CheckResult(**FAILED)
