"""A check that writes to the standard error of the process without end."""

import contextlib
import os
from typing import ClassVar

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "shouts"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        for _ in range(64):
            with contextlib.suppress(BlockingIOError):
                os.write(2, b"x" * 65536)
        text = ""
        return passed("shouts.ok", text)


CHECK = Rogue()
