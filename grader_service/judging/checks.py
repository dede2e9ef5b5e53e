"""Judges evidence: each check of the selected steps takes its observation and answers, without any sandbox."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from checks.api import Result
from checks.codes import needs_review
from checks.raising import raised
from checks.registry import LoadedCheck, Registry
from grader_service.errors import JudgeFailed
from grader_service.judging.run_reporting import report
from grader_service.model.evidence import Evidence, Need
from grader_service.model.lab import LabCheck, LabStep
from grader_service.model.review import seen_text
from grader_service.model.run_report import RunReport
from grader_service.model.verdict import CheckReview, Outcome


class Answered(NamedTuple):
    """What a check answered; see `Judged`."""

    result: Result
    seen: str | None = None
    question: str | None = None


@dataclass(frozen=True)
class Judged:
    """One check's answer, with the place that it has in the lab."""

    step: LabStep
    check: LabCheck
    version: str
    version_text: str
    result: Result
    seen: str | None = None
    """What a person has to see who decides, as `seen_text` has it: of an answer `….needs_review`, and of a pass on
    which a second opinion is wanted."""
    question: str | None = None
    """Where the check wants a second opinion: what a good answer is."""
    review: CheckReview | None = None


@dataclass(frozen=True)
class Judgement:
    """What is said of one run: how it went, and the answer of every check."""

    run: RunReport
    checks: Sequence[Judged]


def needs_of(steps: Iterable[LabStep], registry: Registry) -> frozenset[Need]:
    """Every part of the evidence that the checks of these steps look at."""
    return frozenset().union(*(registry.load(check.id).check.needs for step in steps for check in step.checks))


def judge(evidence: Evidence, steps: Iterable[LabStep], registry: Registry) -> Judgement:
    """How the run went, and the answers of every check of these steps, in the lab's order.

    Raises:
        JudgeFailed: a check raised or answered outside its contract.
    """
    judged = []
    for step in steps:
        for check in step.checks:
            loaded = registry.load(check.id)
            answered = judge_one(loaded, evidence, check)
            judged.append(Judged(step, check, loaded.check.version, loaded.version_text, *answered))
    return Judgement(report(evidence), judged)


def judge_one(loaded: LoadedCheck, evidence: Evidence, check: LabCheck) -> Answered:
    """One check's answer on one run's evidence, with what it saw where somebody may have to look at that.

    Raises:
        JudgeFailed: the check raised or answered outside its contract.
    """
    params = loaded.parse_params(check.params)
    try:
        result, observation = loaded.check.answer(evidence, params)
    except Exception as error:
        told = raised(error)
        raise JudgeFailed(check.id, loaded.distribution, told.text, told.traceback) from error
    question = loaded.check.second_opinion if observation is not None else ""
    if not needs_review(result.outcome, result.code) and not (question and result.outcome is Outcome.PASSED):
        return Answered(result)
    # Without an observation it was answered at once: the details say on what.
    kept = result.details if observation is None else observation.model_dump(mode="json")
    try:
        return Answered(result, seen_text(kept), question or None)
    except (TypeError, ValueError) as error:
        raise JudgeFailed(check.id, loaded.distribution, f"what it saw cannot be written down: {error}") from error
