"""Puts what people decided in the place of answers that were left to them; pure."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from checks.api import Result, failed, passed
from checks.codes import needs_review
from grader_service.judging.checks import Judged
from grader_service.model.feedback import Feedback, NextStep
from grader_service.model.review import MOST_SEEN, Decision, Reviews, subject_of
from grader_service.model.verdict import CheckReview


def with_decisions(judged: Iterable[Judged], reviews: Reviews) -> list[Judged]:
    """The same answers, but for those that were left to a person: with the decision where there is one.

    About what a second opinion left to a person it holds also where the check itself passed it. `reviews` gets what is
    to be shown to a person.
    """
    return [one if one.seen is None else _reviewed(one, one.seen, reviews) for one in judged]


def _reviewed(judged: Judged, seen: str, reviews: Reviews) -> Judged:
    subject = subject_of(judged.check.id, judged.check.params, seen)
    decision = reviews.decided.get(subject)
    if decision is None:
        if not needs_review(judged.result.outcome, judged.result.code):
            return judged
        if len(seen) <= MOST_SEEN:
            reviews.seen[subject] = seen
        return replace(judged, review=CheckReview(subject=subject))
    review = CheckReview(
        subject=subject,
        decision="accepted" if decision.accepted else "rejected",
        decided_by=decision.by,
        decided_at=datetime.fromtimestamp(decision.at, UTC),
        reason=decision.reason,
    )
    return replace(judged, result=_decided(judged.result, decision), review=review)


def _decided(result: Result, decision: Decision) -> Result:
    word = result.code.rpartition(".")[0]
    how = "accepted it" if decision.accepted else "did not accept it"
    feedback = Feedback(
        outcome=f"A person of the course's staff looked at this and {how}.",
        seen=f"Their reason: {decision.reason}",
        next=None if decision.accepted else NextStep(text="Change what the reason names, and hand it in again."),
    )
    tier, details = result.tier, result.details
    if decision.accepted:
        return passed(feedback, code=f"{word}.ok", tier=tier, details=details)
    return failed(f"{word}.not_accepted", feedback, tier=tier, details=details)
