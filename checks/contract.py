"""The contract of a check: one named question about a submission, answered by a pure function.

A check names what it wants to see (its *observation*), takes it from the evidence of a run, and judges it. Judging
does no I/O, reads no clock and keeps no state: the same observation and parameters give the same result on any
machine, so that a cohort can be judged again from stored evidence.
"""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from checks.probe_files import ProbeFile
from checks.results import Result
from grader_service.model.base import first_problem
from grader_service.model.evidence import Evidence, Need

API_VERSION = 1
"""Raised when a check that was written for the old version could be wrong under the new one."""

ParamsT = TypeVar("ParamsT", bound=BaseModel)
ObservationT = TypeVar("ObservationT", bound=BaseModel)


class Answer(NamedTuple, Generic[ObservationT]):
    """What a check answered, and on what."""

    result: Result
    observation: ObservationT | None
    """None where the check answered at once, for want of something to judge."""


class Check(ABC, Generic[ParamsT, ObservationT]):
    """A check, as the registry loads it from the entry-point group `grader.checks`.

    Most are made by `checks.api.check` from a function. A class of its own is for what that cannot say: it sets `id`,
    `version`, `title`, `params_model` and `observation_model`, and implements `observe` and `judge`.
    """

    id: str
    """Equal to the entry point's name."""
    version: str
    """Three numbers; raised whenever the same observation could be judged differently."""
    api_version: int = API_VERSION
    """Of this contract, as the check was written for it."""
    title: str
    """A few words, for tables."""
    about: str = ""
    """What it judges, on what evidence, how points are given and what it cannot detect; the docstring by default."""
    word: str = ""
    """First word of its codes; the id by default."""
    needs: frozenset[Need] = frozenset({Need.DISCOVERY})
    """What a run must collect for this check."""
    probes: tuple[str, ...] = ()
    """Names of the probes that a run has to execute for it."""
    own_probes: Mapping[str, ProbeFile] = {}
    """Those of them that come with the check itself; others are declared in the entry-point group `grader.probes`."""
    codes: Mapping[str, str] = {}
    """Every code that it can answer with, and what that means in a few words.

    A meaning begins with its outcome where that is no failure, such as `unverified: …`; the codes of `checks.stopped`,
    `checks.not_carried` and `checks.probing` come from `checks.codes.common`. Empty where the check does not say.
    """
    second_opinion: str = ""
    """What a good answer is, in English, for a chat model that an operator may have asked.

    Where it is there, observations that this check passed, or leaves undecided with a code that ends in
    `.needs_review`, may be sent to that model: they must hold nothing that learners must not read.
    """
    params_model: type[ParamsT]
    """What a lab may set; forbids unknown fields."""
    observation_model: type[ObservationT]
    """What is judged; forbids unknown fields."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__doc__ and "about" not in cls.__dict__:
            cls.about = inspect.cleandoc(cls.__doc__)

    @property
    def file(self) -> Path | None:
        """The file in which it is written."""
        module = sys.modules.get(type(self).__module__)
        written = getattr(module, "__file__", None)
        return Path(written) if written else None

    def answer(self, evidence: Evidence, params: ParamsT) -> Answer[ObservationT]:
        """What the check answers to a run, with its whole code.

        Raises:
            TypeError: it answered with something else than a result.
        """
        seen = self.observe(evidence)
        if isinstance(seen, Result):
            return Answer(self.whole(seen), None)
        return Answer(self.decide(seen, params), seen)

    def decide(self, observation: ObservationT, params: ParamsT) -> Result:
        """What the check answers to an observation, with its whole code.

        Raises:
            TypeError: it answered with something else than a result.
        """
        return self.whole(self.judge(observation, params))

    def whole(self, result: Result) -> Result:
        """A result of this check with its whole code, where it has the last word alone.

        Raises:
            TypeError: it is no result, or none that a verdict can carry.
        """
        if not isinstance(result, Result):
            raise TypeError(f"it answered a {type(result).__name__}, not a Result")
        code = str(result.code)
        whole = code if "." in code else f"{self.word or self.id}.{code}"
        try:
            return Result(**{**dict(result), "code": whole})  # a copy would be taken as it is, whatever it holds
        except ValidationError as error:
            raise TypeError(f"it answered {whole[:200]!r}, no result for a verdict: {first_problem(error)}") from error

    @abstractmethod
    def observe(self, evidence: Evidence) -> ObservationT | Result:
        """Takes the observation from a run's evidence, or answers at once when it is not there."""

    @abstractmethod
    def judge(self, observation: ObservationT, params: ParamsT) -> Result:
        """Decides on the observation: no I/O, no clock, no state.

        Where it raises, or takes too long, no verdict is made and the run waits for an operator; a check that is only
        advice gets the outcome `error`.
        """

    def names(self, params: ParamsT) -> Mapping[str, str]:
        """Names that a submission must define for this check, and what each holds, for handouts and preflights.

        What it holds is a few words that follow "It should hold".
        """
        del params
        return {}


def is_hidden(extra: object) -> bool:
    """Whether a field's `json_schema_extra` marks it as hidden from learners."""
    return isinstance(extra, Mapping) and extra.get("hidden") is True
