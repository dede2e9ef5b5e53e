"""All that a check's file imports: `check`, `probe`, the types of their arguments, and results."""

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
