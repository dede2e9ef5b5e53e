"""A check that puts into its details what JSON does not have."""

from typing import ClassVar

import numpy as np

from checks.api import API_VERSION, CheckResult, passed
from grader_service.model.base import Wire
from grader_service.model.evidence import Need


class Nothing(Wire):
    """No fields."""


class Rogue:
    """See above."""

    id: ClassVar[str] = "details"
    version: ClassVar[str] = "1.0.0"
    api_version: ClassVar[int] = API_VERSION
    title: ClassVar[str] = "Rogue"
    needs: ClassVar[frozenset[Need]] = frozenset()
    params_model = Nothing
    observation_model = Nothing

    def observe(self, evidence):
        return Nothing()

    def judge(self, observation, params) -> CheckResult:
        text = ""
        return passed("details.ok", text, details={"number": np.float64(1.5), "set": {1}, "bad": "\udce9"})


CHECK = Rogue()
