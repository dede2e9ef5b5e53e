"""What a check answers, and the functions that make it."""

import pytest
from pydantic import ValidationError

from checks.api import Feedback, NextStep, Result, failed, inconclusive, passed, undecided, unverified
from grader_service.model.verdict import Outcome, Tier


def test_parts_stand_beside_the_sentence():
    """In place of a whole `Feedback`."""
    result = failed(
        "too_small",
        "A batch holds 8 images.",
        seen="Three were drawn.",
        wanted="At least 16.",
        next="Raise it:",
        write="batch_size=16",
        numbers={"images": 8},
        score=0.5,
        details={"shape": [8, 3]},
    )
    assert result.parts == Feedback(
        outcome="A batch holds 8 images.",
        seen="Three were drawn.",
        wanted="At least 16.",
        next=NextStep(text="Raise it:", code="batch_size=16"),
        numbers={"images": 8},
    )
    assert (result.outcome, result.code, result.score, result.tier) == (Outcome.FAILED, "too_small", 0.5, None)
    assert result.feedback.endswith("    batch_size=16")


def test_a_whole_feedback_is_taken_as_it_is():
    """And parts beside it are the author's mistake."""
    told = Feedback(outcome="It is small.")
    assert failed("small", told).parts is told
    with pytest.raises(TypeError, match="seen beside a Feedback"):
        failed("small", told, seen="8")


def test_code_to_write_needs_an_action():
    """A line alone says nothing."""
    with pytest.raises(TypeError, match="belong to `next`"):
        failed("small", "It is small.", write="batch_size=16")


def test_an_unknown_part_is_named_with_the_one_that_was_meant():
    """A misspelt keyword would be feedback that no learner reads."""
    with pytest.raises(TypeError, match=r'failed\(\) got .wantd., which is no part of feedback; did you mean "wanted"'):
        failed("small", "It is small.", wantd="At least 16.")
    with pytest.raises(TypeError, match="no part of feedback; parts are: seen, wanted"):
        failed("small", "It is small.", fix="Raise it.")


def test_each_outcome_has_its_score():
    """Nothing is not zero."""
    made = [passed("Good."), failed("bad", "Bad."), unverified("gone", "Gone."), inconclusive("noisy", "Noisy.")]
    assert [(one.outcome.value, one.code, one.score) for one in made] == [
        ("passed", "ok", 1.0),
        ("failed", "bad", 0.0),
        ("unverified", "gone", None),
        ("inconclusive", "noisy", None),
    ]
    assert undecided(Outcome.ERROR, "odd", "Odd.", tier=Tier.CLAIMS).outcome is Outcome.ERROR
    with pytest.raises(ValueError, match="without a score"):
        undecided(Outcome.PASSED, "ok", "Good.")


@pytest.mark.parametrize("code", ["Too small", "", "x.", ".x", "x..y", "X", "x" * 81])
def test_codes_have_their_form(code):
    """One word, or words with dots."""
    with pytest.raises(ValidationError):
        failed(code, "Bad.")


def test_what_learners_make_long_is_cut():
    """Their names and texts stand in ours."""
    result = failed("bad", "x" * 5000, seen="y" * 20_000, wanted="z" * 5000, next="n" * 5000)
    assert len(result.parts.outcome) == len(result.parts.wanted) == len(result.parts.next.text) == 1000
    assert len(result.parts.seen) == 8192
    assert len(failed("bad", "x y " * 5000).feedback) <= 8192


def test_unknown_fields_are_refused():
    """A typo is no part."""
    with pytest.raises(ValidationError, match="tone"):
        Result(outcome=Outcome.FAILED, code="bad", score=0.0, parts=Feedback(outcome="Bad."), tone="harsh")
