"""Whether a result has the form that verdicts can carry: size of texts and details, codes, scores that fit outcomes."""

import json
from collections.abc import Mapping
from typing import Any

from checks.api import CheckResult
from grader_service.model.verdict import Outcome

MAX_FEEDBACK = 8192
MAX_DETAILS = 64 << 10


def problems_of(result: CheckResult) -> list[str]:
    """What is wrong with one result; empty when nothing is. Length and form of codes are the model's to refuse."""
    problems = []
    if not result.feedback.strip():
        problems.append("its feedback is empty")
    expected = {Outcome.PASSED: "1", Outcome.FAILED: "less than 1", Outcome.SKIPPED: "0 or null"}.get(
        result.outcome, "null"
    )
    fits = {
        "0 or null": not result.score,
        "1": result.score == 1,
        "less than 1": result.score is not None and result.score < 1,
        "null": result.score is None,
    }
    if not fits[expected]:
        problems.append(f"its outcome is {result.outcome.value} and its score {result.score}; expected {expected}")
    try:
        size = len(json.dumps(_plain(result.details), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        problems.append(f"its details are no JSON: {error}")
    else:
        if size > MAX_DETAILS:
            problems.append(f"its details have {size} bytes as JSON; at most {MAX_DETAILS}")
    return problems


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
