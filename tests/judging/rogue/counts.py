"""A check that remembers how often it was asked."""

from typing import ClassVar

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need

SEEN = []


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "counts"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        SEEN.append(1)
        text = str(len(SEEN))
        return passed("counts.ok", text)


CHECK = Rogue()
