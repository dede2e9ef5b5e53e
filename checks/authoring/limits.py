"""Whether a result has the form that verdicts can carry, and whether its feedback is one that a learner can act on."""

import json
from collections.abc import Mapping
from typing import Any

from checks.api import Result
from grader_service.model.verdict import Outcome

MAX_DETAILS = 64 << 10
MOST_WORDS = 60
"""Of what a learner reads beside the advice; more is not read."""


def problems_of(result: Result) -> list[str]:
    """What is wrong with one result; empty when nothing is. Length and form of codes are the model's to refuse."""
    problems = []
    if not result.parts.outcome.strip():
        problems.append("the outcome of its feedback is empty")
    score = result.score
    expected, fits = {
        Outcome.PASSED: ("1", score == 1),
        Outcome.FAILED: ("less than 1", score is not None and score < 1),
        Outcome.SKIPPED: ("0 or null", not score),
    }.get(result.outcome, ("null", score is None))
    if not fits:
        problems.append(f"its outcome is {result.outcome.value} and its score {score}; expected {expected}")
    try:
        size = len(json.dumps(_plain(result.details), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        problems.append(f"its details are no JSON: {error}")
    else:
        if size > MAX_DETAILS:
            problems.append(f"its details have {size} bytes as JSON; at most {MAX_DETAILS}")
    return problems


def lacks_of(result: Result, *, usual: bool) -> list[str]:
    """What a learner would miss in the feedback: something to do, and brevity where what was judged is `usual`."""
    parts = result.parts
    lacks = []
    if parts.next is None and result.outcome not in (Outcome.PASSED, Outcome.SKIPPED):
        lacks.append("says nothing to do next")
    action = () if parts.next is None else (parts.next.text, parts.next.code)
    words = len(" ".join((parts.outcome, parts.seen, parts.wanted, *action)).split())
    if usual and words > MOST_WORDS:
        lacks.append(f"has more than {MOST_WORDS} words")
    return lacks


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
