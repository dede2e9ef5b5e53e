"""Judges the items of running batches from stored evidence, a chunk at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from grader_service.errors import ConfigurationError, GraderError, InfrastructureError, StoreUnavailable, UsageError
from grader_service.model.lab import LabSpec
from grader_service.retry_policy import REGRADE_ITEMS, RetryPolicy
from grader_service.service.judge import JudgeDeps, verdict_of
from grader_service.service.kept_labs import kept_lab
from grader_service.service.lease_heartbeat import LeaseHeartbeat
from grader_service.service.patience import patiently
from grader_service.signer.signatures import SignerAway
from grader_service.store import regrades
from grader_service.store.regrade_work import Answer, Chunk, Job, claim_chunk, give_back, renew_chunk, store_answers
from grader_service.store.results import StoredEvidence, unpacked

log = structlog.get_logger(__name__)

CHUNK = 25
"""Items that are claimed and stored together: few enough that a pause takes effect at once."""


class LabNotHere(InfrastructureError):
    """This process cannot read the batch's lab: a plugin is missing or of another version here, perhaps only here."""


@dataclass(frozen=True)
class BulkDeps(JudgeDeps):
    """What judging in bulk works with: as a judge, and no queue."""

    retry: RetryPolicy = REGRADE_ITEMS
    labs: dict[str, dict[str, LabSpec]] = field(default_factory=dict)
    """By batch, then by lab."""


def judge_chunk(deps: BulkDeps, stopped: Callable[[], bool] = lambda: False, *, size: int = CHUNK) -> int | None:
    """Judges the items that should come next; returns how many, or None when nothing waits.

    Args:
        stopped: asked between two items; what was not begun is then given back.

    Raises:
        StoreUnavailable: the database failed, at the claim or for ten minutes; a lease will run out.
        LabNotHere: it cost one item a try, so that an operator sees it, and no other item anything.
        SignerAway: nobody signs now; nothing was claimed.
    """
    deps.signer.keys()
    chunk = claim_chunk(deps.store, deps.owner, deps.lease_s, size)
    if chunk is None:
        return None
    _require_labs(deps, chunk)
    answers: list[Answer] = []
    renew = partial(renew_chunk, deps.store, chunk, deps.lease_s)
    with LeaseHeartbeat(renew, deps.lease_s, batch=chunk.batch_id):  # lost: what is stored in the end is refused
        for job in chunk.jobs:
            if stopped():
                break
            try:
                answers.append(_answer(deps, chunk, job))
            except SignerAway as error:  # which the next chunk is not begun without
                log.warning("signer_away", batch=chunk.batch_id, error=str(error))
                break
        kept = _store(deps, chunk, answers)
        if len(answers) < len(chunk.jobs):
            _give_back(deps, chunk, chunk.jobs[len(answers) :])
    if kept < len(answers):
        log.warning("items_fenced_off", batch=chunk.batch_id, items=len(answers) - kept)
    return len(answers)


def _require_labs(deps: BulkDeps, chunk: Chunk) -> None:
    """Failing in no time, a process without the lab would claim most items of a batch, and fail them all."""
    try:
        _labs(deps, chunk.batch_id)
    except ConfigurationError as error:
        first, *others = chunk.jobs
        failed = Answer(first, None, f"{type(error).__name__}: {error}", again=True)
        _store(deps, chunk, [failed])
        _give_back(deps, chunk, others)
        raise LabNotHere(f"batch {chunk.batch_id}: {error}") from error
    except StoreUnavailable:
        raise
    except GraderError:
        return  # the same everywhere: each item says it


def _store(deps: BulkDeps, chunk: Chunk, answers: Sequence[Answer]) -> int:
    return patiently(lambda: store_answers(deps.store, chunk, answers, deps.retry))


def _give_back(deps: BulkDeps, chunk: Chunk, jobs: Sequence[Job]) -> None:
    patiently(lambda: give_back(deps.store, chunk, jobs))


def _answer(deps: BulkDeps, chunk: Chunk, job: Job) -> Answer:
    try:
        stored = _evidence(job)
        _ = job.base  # read here, so that one that cannot be read fails this item and no other
        lab = _labs(deps, chunk.batch_id)[job.submission.lab]
        verdict = verdict_of(deps, job.submission, lab, job.run_id, stored, job.reviews)
        return Answer(job, deps.signer.sign(verdict))
    except (StoreUnavailable, SignerAway):
        raise
    except GraderError as error:
        log.warning("item_failed", batch=chunk.batch_id, submission_id=job.submission.submission_id, error=str(error))
        again = error.retry and not isinstance(error, UsageError)
        return Answer(job, None, f"{type(error).__name__}: {error}", again=again)
    except Exception as error:
        # A bug of ours in one item: the others of the batch go on, and an operator sees it.
        log.exception("item_bug", batch=chunk.batch_id, submission_id=job.submission.submission_id)
        return Answer(job, None, f"{type(error).__name__}: {error}", again=False)


def _evidence(job: Job) -> StoredEvidence:
    if job.kind is None or job.sha256 is None or job.document is None:
        raise InfrastructureError(f"the evidence of run {job.run_id} is not stored any more")
    return unpacked(job.run_id, job.kind, job.sha256, job.document)


def _labs(deps: BulkDeps, batch_id: str) -> dict[str, LabSpec]:
    """Those of a batch, read once."""
    if batch_id not in deps.labs:
        deps.labs[batch_id] = patiently(
            lambda: {
                ref.lab: kept_lab(deps.store, ref, deps.registry) for ref in regrades.batch(deps.store, batch_id).labs
            }
        )
    return deps.labs[batch_id]
