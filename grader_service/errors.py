"""Our own failures, as exceptions; what a learner's code does wrong is a value and never appears here.

GraderError
├── UsageError              the caller asked for something that cannot be done; not retried; exit code 2
│   └── ConfigurationError  a setting, lab specification or plugin is wrong; blocks at start
├── SubmissionRejected      the submission cannot be run at all; becomes a `rejected` verdict; exit code 5
└── InfrastructureError     our side failed; retried, never costs a learner an attempt; exit code 3
    ├── SandboxUnavailable  no pod could be started, or a pod of our own code died
    │   ├── NotBegun        the same before any code of the learner's ran: another host may do better
    │   └── Outdated        no pod is started for this process any more, but for one that is started anew
    ├── StoreUnavailable    the database does not answer, or refused a statement for a reason that may pass
    └── JudgeFailed         a check raised, was too slow or broke its contract

Every class states who reads it (`audience`) and whether trying again can help (`retry`).
"""

from typing import ClassVar, Literal

Audience = Literal["caller", "learner", "operator", "author"]


class GraderError(Exception):
    """Root of every failure that is not the learner's."""

    audience: ClassVar[Audience] = "operator"
    retry: ClassVar[bool] = False
    exit_code: ClassVar[int] = 3


class UsageError(GraderError):
    """The request itself is wrong: says what was expected, what came and what to do."""

    audience: ClassVar[Audience] = "caller"
    exit_code: ClassVar[int] = 2


class ConfigurationError(UsageError):
    """A setting, lab specification, image or plugin is missing or invalid."""

    audience: ClassVar[Audience] = "operator"


class SubmissionRejected(GraderError):
    """The submission is unusable before any of its code could run.

    Args:
        code: stable machine-readable reason, such as `archive.traversal`.
        feedback: what was expected, what came and what to do, for the learner.
    """

    audience: ClassVar[Audience] = "learner"
    exit_code: ClassVar[int] = 5

    def __init__(self, code: str, feedback: str) -> None:
        super().__init__(f"{code}: {feedback}")
        self.code = code
        self.feedback = feedback


class InfrastructureError(GraderError):
    """Something of ours failed; the learner's attempt is untouched."""

    retry: ClassVar[bool] = True


class StoreUnavailable(InfrastructureError):
    """The database does not answer, or refused a statement for a reason that may pass."""


class SandboxUnavailable(InfrastructureError):
    """A pod could not be started or watched, or a pod that runs only our code died."""


class NotBegun(SandboxUnavailable):
    """A run failed before any code of the learner's was started: on a host that is unfit, nothing was tried."""


class Outdated(SandboxUnavailable):
    """What this process was told of its sandbox at its start is not so any more: it must be started anew."""


class JudgeFailed(InfrastructureError):
    """A check raised, ran out of its limits or returned something outside its contract.

    Args:
        check_id: of the check.
        distribution: that it came with.
        reason: in a line; of what it raised, with the author's line.
        traceback: of what it raised, for its author; empty where it raised nothing.
    """

    audience: ClassVar[Audience] = "author"
    retry: ClassVar[bool] = False

    def __init__(self, check_id: str, distribution: str, reason: str, traceback: str = "") -> None:
        super().__init__(f"check {check_id!r} of {distribution} failed: {reason}")
        self.check_id = check_id
        self.distribution = distribution
        self.reason = reason
        self.traceback = traceback
