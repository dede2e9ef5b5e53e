"""Takes messages in: validates, stores the artifact, accepts the submission; answers at once what cannot be graded."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service import verdicts
from grader_service.errors import ConfigurationError, SubmissionRejected, UsageError
from grader_service.judging import needs_of
from grader_service.labs.catalogue import load_lab
from grader_service.model.base import neutralise
from grader_service.model.evidence import ProbeRef, RunPlan
from grader_service.model.lab import LabSpec, threshold_of
from grader_service.model.probe import ProbeTask
from grader_service.model.submission import Submission
from grader_service.probe_plan import wanted_probes
from grader_service.service.message import Malformed, SubmissionMessage, parse_message, reply_of, salvage
from grader_service.signing import Signer
from grader_service.store.acceptance import (
    Accepted,
    Arrival,
    Conflicting,
    Content,
    IntakeLimits,
    Outcome,
    Purpose,
    Refused,
    Waiter,
    accept_all,
)
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.outbox import enqueue


@dataclass
class IntakeDesk:
    """What intake works with."""

    store: Store
    artifacts: ArtifactStore
    registry: Registry
    signer: Signer
    limits: IntakeLimits = field(default_factory=IntakeLimits)
    actor: str = "intake"
    helpers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(8, "intake-helper"))
    """Bring artifacts home side by side: most of that time is spent waiting for a disk or another host."""
    probes: ProbeFiles = field(default_factory=ProbeFiles)
    _labs: dict[str, LabSpec] = field(default_factory=dict)

    def lab(self, lab_id: str) -> LabSpec:
        """The lab, loaded once."""
        if lab_id not in self._labs:
            self._labs[lab_id] = load_lab(lab_id, self.registry)
        return self._labs[lab_id]


@dataclass(frozen=True)
class Taken:
    """What became of a message."""

    kind: str
    """`accepted`, `repeated` or `refused`."""
    run_id: str | None = None


def receive(desk: IntakeDesk, body: object, purpose: Purpose, task_id: str | None) -> Taken:
    """Takes one message in. Whatever it holds, it is answered or stored, and the caller can go on.

    Args:
        body: the argument `submission`, of any form.
        purpose: from the queue on which it came.
        task_id: the Celery task whose result shall be the verdict.

    Raises:
        InfrastructureError: the store or the artifacts' store failed; the message should come again.
    """
    return receive_all(desk, [(body, task_id)], purpose)[0]


def receive_all(desk: IntakeDesk, messages: Sequence[tuple[object, str | None]], purpose: Purpose) -> list[Taken]:
    """The same for several messages, given as (body, task id): their artifacts side by side, one transaction.

    Raises:
        InfrastructureError: as above; all of the messages should come again, those that were taken are known by then.
    """
    if len(messages) == 1:
        prepared = [_prepare(desk, messages[0], purpose)]
    else:
        prepared = list(desk.helpers.map(lambda message: _prepare(desk, message, purpose), messages))
    taken: list[Taken | None] = [None] * len(messages)
    arrivals: list[tuple[int, Arrival]] = []
    for number, ((body, task_id), found) in enumerate(zip(messages, prepared, strict=True)):
        if isinstance(found, Refused):
            taken[number] = _refuse(desk, body, task_id, found.code, found.feedback)
        else:
            arrivals.append((number, found))
    outcomes = accept_all(desk.store, [arrival for _, arrival in arrivals], desk.limits, desk.actor) if arrivals else []
    for (number, arrival), outcome in zip(arrivals, outcomes, strict=True):
        body, task_id = messages[number]
        taken[number] = _answer(desk, body, task_id, arrival, outcome)
    return [answer for answer in taken if answer is not None]


def _prepare(desk: IntakeDesk, message: tuple[object, str | None], purpose: Purpose) -> Arrival | Refused:
    """Validates a message and brings its artifact home; a problem of the message's own is a refusal."""
    body, task_id = message
    try:
        parsed = parse_message(body)
        plan = _plan(desk, parsed)
        digest, size = _store_artifact(desk, parsed)
    except ConfigurationError:
        raise  # a broken lab of ours is no fault of the message: it stays on the queue
    except (Malformed, UsageError) as error:
        return Refused("message.malformed", f"The message cannot be graded: {error}")
    except SubmissionRejected as rejection:
        return Refused(rejection.code, rejection.feedback)
    submission = Submission(
        submission_id=parsed.submission_id,
        lab=parsed.lab,
        learner=parsed.learner,
        cohort=parsed.cohort,
        submitted_at=parsed.submitted_at,
        filename=parsed.artifact.filename,
        sha256=digest,
        size_bytes=size,
        steps=parsed.steps,
    )
    reply = parsed.reply_to
    waiter = Waiter(task_id, reply.queue if reply else None, reply.task if reply else None)
    return Arrival(submission, plan, purpose, waiter)


def _answer(desk: IntakeDesk, body: object, task_id: str | None, arrival: Arrival, outcome: Outcome) -> Taken:
    if isinstance(outcome, Refused):
        return _refuse(desk, body, task_id, outcome.code, outcome.feedback)
    if isinstance(outcome, Conflicting):
        return _refuse(
            desk,
            body,
            task_id,
            "submission.conflict",
            f"Submission {arrival.submission.submission_id} was handed in before with other content: "
            f"{outcome.first.differs(Content.of(arrival.submission))}. Its verdict stands; use a new submission_id "
            "for new content.",
        )
    return Taken("accepted" if isinstance(outcome, Accepted) else "repeated", outcome.run_id)


def _plan(desk: IntakeDesk, message: SubmissionMessage) -> RunPlan:
    lab = desk.lab(message.lab)
    needs = needs_of(lab.selected(message.steps), desk.registry)
    tasks = wanted_probes(lab.selected(message.steps), desk.registry, desk.probes)
    return RunPlan(
        needs=tuple(sorted(needs)),
        steps=message.steps,
        threshold=threshold_of(lab),
        probes=tuple(_keep_source(desk, task) for task in tasks),
    )


def _keep_source(desk: IntakeDesk, task: ProbeTask) -> ProbeRef:
    """Puts a probe's source where runners find it by its digest; they need no plugin for it."""
    desk.artifacts.put(task.source)  # asks no more than whether it is there, once it is
    return task.ref


def _store_artifact(desk: IntakeDesk, message: SubmissionMessage) -> tuple[str, int]:
    artifact = message.artifact
    if artifact.uri is not None and artifact.sha256 is not None:
        return desk.artifacts.fetch(artifact.uri, artifact.sha256)
    try:
        data = artifact.inline_bytes()
    except ValueError as error:
        raise Malformed(str(error)) from None
    digest = desk.artifacts.put(data)
    if artifact.sha256 is not None and artifact.sha256 != digest:
        raise SubmissionRejected(
            "artifact.digest_mismatch",
            f"The artifact in the message has SHA-256 {digest}; the message says {artifact.sha256}. Send it again.",
        )
    return digest, len(data)


def refuse_unreadable(desk: IntakeDesk, reason: str, task_id: str | None) -> Taken:
    """Answers what is no message for `grader.grade` at all, but names a task that somebody waits for."""
    return _refuse(desk, None, task_id, "message.malformed", f"The message cannot be read: {reason}")


def _refuse(desk: IntakeDesk, body: object, task_id: str | None, code: str, feedback: str) -> Taken:
    """Answers with a `rejected` verdict that is sent and not kept: the id stays free for a better message."""
    submission_id = salvage(body, "submission_id", "unknown")
    lab_id = salvage(body, "lab", "unknown")
    verdict = desk.signer.sign(verdicts.refused(submission_id, lab_id, code, feedback))
    reply = reply_of(body)
    with desk.store.transaction() as connection:
        enqueue(
            connection,
            None,
            task_id,
            reply.queue if reply else None,
            reply.task if reply else None,
            verdict.model_dump_json(),
        )
        said = neutralise(feedback[:500])
        record(connection, "refused", desk.actor, submission_id=submission_id, code=code, feedback=said)
    return Taken("refused")
