"""The contract of a check: one named question about a submission, answered by a pure function.

A check names what it wants to see (its *observation*), takes it from the evidence of a run, and judges it. Judging
does no I/O, reads no clock and keeps no state: the same observation and parameters give the same result on any
machine, so that a cohort can be judged again from stored evidence.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, Field, model_validator

from grader_service.model.base import Code, Details, Fraction, Frozen
from grader_service.model.evidence import Evidence, Need
from grader_service.model.feedback import Feedback
from grader_service.model.verdict import Outcome, Tier

API_VERSION = 2
"""Raised when a check can say more, or when a judge written for the old version could be wrong under the new one."""
ACCEPTED_VERSIONS = (1, 2)
"""Versions that this grader serves. Version 1 knows no probes and is otherwise the same."""

MAX_FEEDBACK = 8192
"""Characters; what a learner's own text makes longer is cut."""

ParamsT_contra = TypeVar("ParamsT_contra", bound=BaseModel, contravariant=True)
ObservationT = TypeVar("ObservationT", bound=BaseModel)


class CheckResult(Frozen):
    """What a check answers."""

    outcome: Outcome
    code: Code
    """Stable reason; `<check>.ok` for a pass."""
    score: Fraction | None
    """Share of the points in [0, 1]; null where nothing was decided."""
    parts: Feedback
    """For the learner: what was found, seen and wanted, and what to do next."""
    details: Annotated[Mapping[str, object], Field(default_factory=dict)]
    tier: Tier | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: object) -> object:
        """Takes `feedback`, a text, in place of `parts`: what checks made before there were parts."""
        if isinstance(given, Mapping) and isinstance(given.get("feedback"), str) and "parts" not in given:
            text = given["feedback"]
            return {name: value for name, value in given.items() if name != "feedback"} | {"parts": Feedback.of(text)}
        return given

    @property
    def feedback(self) -> str:
        """The parts as plain text, at most 8192 characters."""
        return self.parts.text[:MAX_FEEDBACK]


def passed(
    code: str, feedback: Feedback | str, *, tier: Tier | None = None, details: Details | None = None
) -> CheckResult:
    """A full pass."""
    return CheckResult(
        outcome=Outcome.PASSED, code=code, score=1.0, parts=in_parts(feedback), details=details or {}, tier=tier
    )


def failed(
    code: str,
    feedback: Feedback | str,
    *,
    score: float = 0.0,
    tier: Tier | None = None,
    details: Details | None = None,
) -> CheckResult:
    """A failure that the learner can mend; `score` is the share earned all the same."""
    return CheckResult(
        outcome=Outcome.FAILED, code=code, score=score, parts=in_parts(feedback), details=details or {}, tier=tier
    )


def undecided(
    outcome: Outcome,
    code: str,
    feedback: Feedback | str,
    *,
    tier: Tier | None = None,
    details: Details | None = None,
) -> CheckResult:
    """`inconclusive`, `unverified`, `skipped` or `error`: no score at all, which is not the same as 0."""
    if outcome in (Outcome.PASSED, Outcome.FAILED):
        raise ValueError(f"undecided() is for outcomes without a score, got {outcome.value}")
    return CheckResult(
        outcome=outcome, code=code, score=None, parts=in_parts(feedback), details=details or {}, tier=tier
    )


def in_parts(feedback: Feedback | str) -> Feedback:
    """A text alone, as long as it may be."""
    return feedback if isinstance(feedback, Feedback) else Feedback.of(feedback[:MAX_FEEDBACK])


@runtime_checkable
class Check(Protocol[ParamsT_contra, ObservationT]):
    """A check as the registry loads it from the entry-point group `grader.checks`."""

    id: ClassVar[str]
    """Equal to the entry point's name."""
    version: ClassVar[str]
    """Raised whenever the same observation could be judged differently."""
    api_version: ClassVar[int]
    title: ClassVar[str]
    needs: ClassVar[frozenset[Need]]
    """What a run must collect for this check."""
    # Since version 2, and optional: `probes: ClassVar[tuple[str, ...]]`, names in the entry-point group `grader.probes`
    # of what a run has to observe for this check; see `checks.probe_files` and `checks.probing`.
    # Optional: `codes: ClassVar[Mapping[str, str]]`, every code that the check can answer with and what it means in a
    # few words. A meaning begins with its outcome where that is no failure, such as `unverified: …`; the codes of
    # `checks.stopped`, `checks.not_carried` and `checks.probing` come from `checks.codes.common`.
    # Optional: `second_opinion: ClassVar[str]`, for a chat model that an operator may have asked: what a good answer
    # is, in English. Where it is there, observations that this check passed, or leaves undecided with a code that ends
    # in `.needs_review`, may be sent to that model: they must hold nothing that learners must not read.
    # Optional: `names(params) -> Mapping[str, str]`: names that a submission must define for this check, and what each
    # holds, in a few words that follow "It should hold"; for the lab's handout and for preflights.
    params_model: ClassVar[type[BaseModel]]
    observation_model: ClassVar[type[BaseModel]]

    def observe(self, evidence: Evidence) -> ObservationT | CheckResult:
        """Takes the observation from a run's evidence, or answers at once when it is not there."""
        ...

    def judge(self, observation: ObservationT, params: ParamsT_contra) -> CheckResult:
        """Decides on the observation; pure."""
        ...


def probes_of(check: Check[BaseModel, BaseModel]) -> tuple[str, ...]:
    """Names of the probes that a check wants; none for a check of API version 1."""
    return tuple(getattr(check, "probes", ())) if check.api_version > 1 else ()


def codes_of(check: Check[BaseModel, BaseModel]) -> Mapping[str, str]:
    """Code → meaning of what a check says that it can answer with; empty when it does not say."""
    return dict(getattr(check, "codes", {}))


def question_of(check: Check[BaseModel, BaseModel]) -> str | None:
    """What a good answer is, for a second opinion by a chat model; None where the check wants none."""
    return getattr(check, "second_opinion", None)


def names_of(check: Check[BaseModel, BaseModel], params: BaseModel) -> Mapping[str, str]:
    """Name → what it holds of what a submission must define for a check; empty when it does not say."""
    say = getattr(check, "names", None)
    return dict(say(params)) if callable(say) else {}


def is_hidden(extra: object) -> bool:
    """Whether a field's `json_schema_extra` marks it as hidden from learners."""
    return isinstance(extra, Mapping) and extra.get("hidden") is True
