"""What a learner reads of a check is short, says everything once, and ends with what to do."""

import re

from checks.api import Result
from grader_service.model.verdict import Outcome

MOST_WORDS = 60


def assert_brief(result: Result) -> None:
    """At most 60 words beside the advice, no sentence twice, and a next step unless it passed or was not reached."""
    parts = result.parts
    action = (parts.next.text, parts.next.code) if parts.next is not None else ("", "")
    told = " ".join(filter(None, (parts.outcome, parts.seen, parts.wanted, *action)))
    assert len(told.split()) <= MOST_WORDS, told
    sentences = re.split(r"(?<=[.:]) +", " ".join(filter(None, (parts.outcome, parts.seen, parts.wanted, action[0]))))
    assert len(sentences) == len(set(sentences)), told
    assert (parts.next is None) == (result.outcome in (Outcome.PASSED, Outcome.SKIPPED)), told
    for advice in parts.advice:
        assert advice.code.startswith("advice."), advice
        assert len(advice.text.split()) <= 40, advice
