"""A probe on its way into a pod."""

from dataclasses import dataclass

from grader_service.model.evidence import ProbeRef


@dataclass(frozen=True)
class ProbeTask:
    """A probe that a run has to execute, with its source."""

    ref: ProbeRef
    source: bytes
