"""A check that prints, and looks where it is."""

import os
import sys
from typing import ClassVar

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "chats"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        print("to whoever listens")
        print("and here", file=sys.stderr)
        text = ",".join(sorted(os.environ))
        return passed("chats.ok", text)


CHECK = Rogue()
