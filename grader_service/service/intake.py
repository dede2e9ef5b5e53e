"""Takes messages in: reads, admits, stores the artifact, accepts; answers at once what cannot be graded."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar, cast

import structlog

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import ConfigurationError, SubmissionRejected, UsageError
from grader_service.judging import verdicts
from grader_service.model.base import neutralise
from grader_service.model.lab import LabRef
from grader_service.model.submission import Submission
from grader_service.service.kept_labs import TakenLab, installed_lab
from grader_service.service.message import (
    ArtifactMessage,
    Malformed,
    ReplyTo,
    SubmissionMessage,
    parse_message,
    reply_of,
    salvage,
)
from grader_service.service.run_planning import Planned, plan_run
from grader_service.signer.signatures import Signer
from grader_service.store.acceptance import Accepted, Arrival, Repeated, accept_all
from grader_service.store.admission import Admitted, Conflicting, Content, IntakeLimits, Refused, Wanted, foresee
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.away import SourceAway
from grader_service.store.engine import Store
from grader_service.store.events import REFUSED, record
from grader_service.store.outbox import Waiter, enqueue
from grader_service.store.results import store_blob
from grader_service.store.submissions import ProgressTo
from grader_service.store.tables import PREFLIGHT, Purpose

log = structlog.get_logger(__name__)
_STORE_AGAIN_S = 60.0
"""A lab's text is deleted with its last run."""
ChosenT = TypeVar("ChosenT")
OtherT = TypeVar("OtherT")
NewT = TypeVar("NewT")


@dataclass
class IntakeDeps:
    """Dependencies of the intake, and the labs that it has stored."""

    store: Store
    artifacts: ArtifactStore
    registry: Registry
    signer: Signer
    limits: IntakeLimits = field(default_factory=IntakeLimits)
    actor: str = "intake"
    helpers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, "intake-helper"))
    """Fetch artifacts in parallel: most of that time is spent waiting for a disk or another host."""
    probes: ProbeFiles = field(default_factory=ProbeFiles)
    _kept: dict[str, float] = field(default_factory=dict)
    """Digests of the labs whose texts this process has stored, and when it did so last, by `time.monotonic`."""

    def keep(self, lab: TakenLab) -> LabRef:
        """Stores the lab's text, by which new runs are graded; returns its reference.

        Raises:
            StoreUnavailable: the database failed.
        """
        now = time.monotonic()
        if now - self._kept.get(lab.sha256, -_STORE_AGAIN_S) >= _STORE_AGAIN_S:
            with self.store.transaction() as connection:
                store_blob(connection, lab.sha256, lab.text.content)
            self._kept[lab.sha256] = now
        return LabRef(sha256=lab.sha256, form=lab.text.form.value)


@dataclass(frozen=True)
class Taken:
    """What became of a message."""

    kind: str
    """`accepted`, `repeated`, `refused`, or `away`: source or lab cannot be read now; tried later."""
    run_id: str | None = None


_Outcome = Accepted | Repeated | Refused | Taken


def receive_all(deps: IntakeDeps, messages: Sequence[tuple[object, str | None]], purpose: Purpose) -> list[Taken]:
    """Takes messages in, their artifacts side by side, in one transaction. Each is answered, stored or deferred.

    Limits and conflicts are looked at before anything is fetched or stored, and again when the messages are accepted.

    Args:
        messages: (body, task id): the argument `submission`, of any form, and the Celery task whose result shall be
            the verdict.
        purpose: from the queue on which they came.

    Raises:
        InfrastructureError: the store or the artifacts' store failed; send all messages again: those that were taken
            are recognised.
    """
    read: list[_Read | Refused | Taken] = [_read(deps, body, task_id) for body, task_id in messages]
    admitted: list[_Read | Refused | Taken] = _replaced(read, _Read, lambda some: _admitted(deps, some))
    arrivals: list[Arrival | Refused | Taken] = _replaced(
        admitted, _Read, lambda some: _with_artifacts(deps, some, purpose)
    )
    outcomes: list[_Outcome] = _replaced(arrivals, Arrival, lambda some: _accepted(deps, some))
    return [_taken(deps, body, task_id, outcome) for (body, task_id), outcome in zip(messages, outcomes, strict=True)]


def _taken(deps: IntakeDeps, body: object, task_id: str | None, outcome: _Outcome) -> Taken:
    if isinstance(outcome, Taken):
        return outcome
    if isinstance(outcome, Refused):
        return _refuse(deps, body, task_id, outcome.code, outcome.feedback)
    return Taken("accepted" if isinstance(outcome, Accepted) else "repeated", outcome.run_id)


@dataclass(frozen=True)
class _Read:
    """A message that is understood."""

    message: SubmissionMessage
    task_id: str | None
    lab: TakenLab
    """As it is now; the run is graded by it, whatever becomes of it later."""
    planned: Planned
    data: bytes | None
    """The artifact, where it came in the message."""
    sha256: str

    @property
    def wanted(self) -> Wanted:
        preflight = self.message.mode == PREFLIGHT
        content = Content.made_of(self.message.lab, self.message.steps, self.sha256, preflight=preflight)
        return Wanted(self.message.submission_id, content, self.message.learner)


def _read(deps: IntakeDeps, body: object, task_id: str | None) -> _Read | Refused | Taken:
    """Validates a message; what is wrong with it refuses it; where our lab is broken, it comes again later."""
    try:
        message = parse_message(body)
        lab = installed_lab(message.lab, deps.registry)
        preflight = message.mode == PREFLIGHT
        planned = plan_run(lab.spec, message.steps, deps.registry, deps.probes, preflight=preflight)
        data, digest = _inline(message.artifact)
        return _Read(message, task_id, lab, planned, data, digest)
    except ConfigurationError as error:
        log.warning("lab_does_not_load", task_id=task_id, error=str(error)[:300])
        return Taken("away")
    except (Malformed, UsageError) as error:
        return Refused("message.malformed", f"The message cannot be graded: {error}")
    except SubmissionRejected as rejection:
        return Refused(rejection.code, rejection.feedback)


def _inline(artifact: ArtifactMessage) -> tuple[bytes | None, str]:
    """The bytes that came in the message, if they did, and their SHA-256, or the one that was announced."""
    if artifact.uri is not None and artifact.sha256 is not None:
        return None, artifact.sha256
    try:
        data = artifact.inline_bytes()
    except ValueError as error:
        raise Malformed(str(error)) from None
    digest = hashlib.sha256(data).hexdigest()
    if artifact.sha256 is not None and artifact.sha256 != digest:
        raise SubmissionRejected(
            "artifact.digest_mismatch",
            f"The artifact in the message has SHA-256 {digest}; the message says {artifact.sha256}. Send it again.",
        )
    return data, digest


def _admitted(deps: IntakeDeps, read: Sequence[_Read]) -> list[_Read | Refused]:
    """Admits by quota, and refuses an id that came with other content."""
    decisions = foresee(deps.store, [one.wanted for one in read], deps.limits)
    return [
        one if isinstance(decision, Admitted) else _refused(decision, one.wanted)
        for one, decision in zip(read, decisions, strict=True)
    ]


def _with_artifacts(deps: IntakeDeps, read: Sequence[_Read], purpose: Purpose) -> list[Arrival | Refused | Taken]:
    """Stores artifacts, and sources of probes, where runners find them by their digests."""
    if len(read) == 1:
        return [_arrival(deps, read[0], purpose)]
    return list(deps.helpers.map(lambda one: _arrival(deps, one, purpose), read))


def _arrival(deps: IntakeDeps, read: _Read, purpose: Purpose) -> Arrival | Refused | Taken:
    message = read.message
    try:
        if read.data is not None:
            deps.artifacts.put(read.data)
            size = len(read.data)
        else:
            size = deps.artifacts.fetch(message.artifact.uri or "", read.sha256)
    except SubmissionRejected as rejection:
        return Refused(rejection.code, rejection.feedback)
    except SourceAway:
        return Taken("away")
    for task in read.planned.probes:  # runners need no plugin for them
        deps.artifacts.put(task.source)
    submission = Submission(
        submission_id=message.submission_id,
        lab=message.lab,
        learner=message.learner,
        cohort=message.cohort,
        submitted_at=message.submitted_at,
        filename=message.artifact.filename,
        sha256=read.sha256,
        size_bytes=size,
        steps=message.steps,
    )
    plan = read.planned.by(deps.keep(read.lab))
    progress = message.progress_to
    told = ProgressTo(progress.queue, progress.task) if progress else None
    waiter = _waiter(read.task_id, message.reply_to)
    return Arrival(submission, plan, PREFLIGHT if message.mode == PREFLIGHT else purpose, waiter, told)


def _waiter(task_id: str | None, reply: ReplyTo | None) -> Waiter:
    return Waiter(task_id) if reply is None else Waiter(task_id, reply.queue, reply.task)


def purpose_of(body: object, queue: Purpose) -> Purpose:
    """What a message that was accepted is a run for, by its mode and the queue on which it came."""
    return PREFLIGHT if isinstance(body, Mapping) and body.get("mode") == PREFLIGHT else queue


def _accepted(deps: IntakeDeps, arrivals: Sequence[Arrival]) -> list[Accepted | Repeated | Refused]:
    """Stores and queues; refuses what became impossible meanwhile."""
    outcomes = accept_all(deps.store, arrivals, deps.limits, deps.actor)
    return [
        _refused(outcome, arrival.wanted) if isinstance(outcome, Conflicting | Refused) else outcome
        for arrival, outcome in zip(arrivals, outcomes, strict=True)
    ]


def _refused(decision: Conflicting | Refused, wanted: Wanted) -> Refused:
    if isinstance(decision, Refused):
        return decision
    return Refused(
        "submission.conflict",
        f"Submission {wanted.submission_id} was handed in before with other content: "
        f"{decision.first.differs(wanted.content)}. Its verdict stands; use a new submission_id for new content.",
    )


def _replaced(
    items: Sequence[ChosenT | OtherT], kind: type[ChosenT], work: Callable[[Sequence[ChosenT]], Sequence[NewT]]
) -> list[NewT | OtherT]:
    """The items, those of one kind replaced by what became of them when they were worked on together."""
    became = iter(work([item for item in items if isinstance(item, kind)]))
    return [next(became) if isinstance(item, kind) else cast("OtherT", item) for item in items]


def refuse_unreadable(deps: IntakeDeps, reason: str, task_id: str | None) -> Taken:
    """Answers what is no message for `grader.grade` at all, but names a task that somebody waits for."""
    return _refuse(deps, None, task_id, "message.malformed", f"The message cannot be read: {reason}")


def _refuse(deps: IntakeDeps, body: object, task_id: str | None, code: str, feedback: str) -> Taken:
    """Answers with a `rejected` verdict that is sent and not kept: the id stays free for a better message."""
    submission_id = salvage(body, "submission_id", "unknown")
    lab_id = salvage(body, "lab", "unknown")
    verdict = deps.signer.sign(verdicts.refused(submission_id, lab_id, code, feedback))
    waiter = _waiter(task_id, reply_of(body))
    with deps.store.transaction() as connection:
        letter = enqueue(connection, None, waiter, verdict.model_dump_json())
        named = body.get("learner") if isinstance(body, Mapping) else None
        record(
            connection,
            REFUSED,
            deps.actor,
            submission_id=submission_id,
            code=code,
            feedback=neutralise(feedback[:500]),
            learner=neutralise(named[:200]) if isinstance(named, str) else None,
            letter=letter,
            verdict_id=verdict.verdict_id,
        )
    return Taken("refused")
