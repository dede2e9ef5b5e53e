"""A check that kills its process without a word to Python."""

import os
import signal
from typing import ClassVar

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "crashes"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        os.kill(os.getpid(), signal.SIGSEGV)
        text = ""
        return passed("crashes.ok", text)


CHECK = Rogue()
