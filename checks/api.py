"""All that a check's file imports.

A check is one function of the evidence that it names as its arguments:

    @check(version="1.0.0")
    def enough_workers(loaders: Loaders, *, least: int = 1) -> Result:
        most = max((loader.num_workers for loader in loaders), default=0)
        if most < least:
            return failed("too_few", f"No DataLoader has more than {most} workers.", next="Give one more workers.")
        return passed(f"A DataLoader has {most} workers.")

Evidence comes from `Loaders`, `Graph`, `Measurement` and the other types of arguments; `passed`, `failed` and others
make results; `probe` looks into a pod; `Check` is for what a function cannot say. See docs/writing-checks.md.
"""

from checks.arguments import (
    Batch,
    Dataset,
    FromProbe,
    Graph,
    Loaders,
    Names,
    Pipelines,
    Run,
    Taken,
)
from checks.contexts import GraphProbe, LearnerProbe
from checks.contract import API_VERSION, Answer, Check
from checks.function import FunctionCheck, check
from checks.own_probe import Observation, OwnProbe, probe
from checks.results import (
    MAX_FEEDBACK,
    Parts,
    Result,
    failed,
    inconclusive,
    our_fault,
    passed,
    undecided,
    unverified,
)
from checks.stopped import Absent, absent, missing, not_reached
from grader_service.model.discovery import Discovery
from grader_service.model.evidence import CleanRoom
from grader_service.model.feedback import Advice, Feedback, NextStep, Severity
from grader_service.model.measurement import Measurement

__all__ = [
    "API_VERSION",
    "MAX_FEEDBACK",
    "Absent",
    "Advice",
    "Answer",
    "Batch",
    "Check",
    "CleanRoom",
    "Dataset",
    "Discovery",
    "Feedback",
    "FromProbe",
    "FunctionCheck",
    "Graph",
    "GraphProbe",
    "LearnerProbe",
    "Loaders",
    "Measurement",
    "Names",
    "NextStep",
    "Observation",
    "OwnProbe",
    "Parts",
    "Pipelines",
    "Result",
    "Run",
    "Severity",
    "Taken",
    "absent",
    "check",
    "failed",
    "inconclusive",
    "missing",
    "not_reached",
    "our_fault",
    "passed",
    "probe",
    "undecided",
    "unverified",
]
