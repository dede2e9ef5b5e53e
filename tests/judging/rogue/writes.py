"""A check that writes a file."""

from pathlib import Path
from typing import ClassVar

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "writes"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        Path("/tmp/written-by-a-check").write_text("x")
        text = ""
        return passed("writes.ok", text)


CHECK = Rogue()
