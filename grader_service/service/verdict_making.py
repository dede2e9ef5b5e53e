"""From a stored document to a verdict; not signed yet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from checks.registry import Registry
from grader_service.errors import InfrastructureError, SubmissionRejected, UsageError
from grader_service.judging import verdicts
from grader_service.judging.checks import judge as judge_here
from grader_service.judging.preflighting import preflight_of
from grader_service.judging.process import EvidenceUnreadable, JudgeProcess
from grader_service.labs.discovery import LabText
from grader_service.labs.specs import lab_text, read_lab
from grader_service.model.evidence import Evidence, Quoted, Rejection
from grader_service.model.lab import LabSpec, LabStep
from grader_service.model.review import Reviews
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Verdict
from grader_service.service.decisions import with_decisions
from grader_service.service.second_opinions import SecondOpinions
from grader_service.store.cancelling import CANCELLED
from sandbox.api import SandboxFacts

ModelT = TypeVar("ModelT", bound=BaseModel)


def verdict_on(
    submission: Submission,
    lab: LabSpec,
    run_id: str,
    kind: str,
    document: bytes,
    registry: Registry,
    judging: JudgeProcess | None,
    reviews: Reviews | None = None,
    *,
    opinions: SecondOpinions | None = None,
) -> Verdict:
    """The verdict on what a run left behind.

    Args:
        kind: of the document, as the store keeps it.
        document: `Evidence`, or a `Rejection`, as JSON.
        judging: where checks judge; in this process if absent.
        reviews: what people decided about this submission; gets what is to be shown to one.
        opinions: asks a model for second opinions, where one is set up.

    Raises:
        JudgeFailed: a check raised or answered outside its contract.
        StoreUnavailable: opinions could not be looked up or kept.
        InfrastructureError: the document cannot be read.
    """
    steps = lab.selected(submission.steps)
    reviews = Reviews() if reviews is None else reviews
    if kind == "rejection":
        read = _read(Rejection, document, run_id)
        mode = Mode.OFFICIAL if read.device == "cuda" else Mode.REHEARSAL
        return _rejected(submission, lab, steps, read, mode)
    evidence: Evidence | Quoted
    if judging is None:
        evidence = _read(Evidence, document, run_id)
        judgement = judge_here(evidence, steps, registry)
    else:
        evidence = _read(Quoted, document, run_id)  # all of it is read where it is judged
        try:
            judgement = judging.judge(document, steps, registry)
        except EvidenceUnreadable as error:
            raise _unreadable(run_id, error) from error
    checks = judgement.checks
    if opinions is not None:
        checks = opinions.on(submission.submission_id, run_id, checks, reviews.decided)
    final = replace(judgement, checks=with_decisions(checks, reviews))
    return verdicts.compose(submission, lab, steps, final, evidence)


def preflight_on(
    submission: Submission,
    lab: LabSpec,
    run_id: str,
    kind: str,
    document: bytes,
    registry: Registry,
    judging: JudgeProcess | None,
) -> Verdict:
    """The answer to who asked for a preflight; see `verdict_on` for the arguments.

    Raises:
        JudgeFailed: a check failed, or took too long.
        InfrastructureError: the document cannot be read.
    """
    steps = lab.selected(submission.steps)
    if kind == "rejection":
        return _rejected(submission, lab, steps, _read(Rejection, document, run_id), Mode.PREFLIGHT)
    if judging is None:
        evidence = _read(Evidence, document, run_id)
        return verdicts.preflighted(submission, lab, steps, preflight_of(evidence, lab, steps, registry), evidence.run)
    run = _read(Quoted, document, run_id).run  # all of it is read where it is looked at
    try:
        found = judging.preflight(document, lab, steps)
    except EvidenceUnreadable as error:
        raise _unreadable(run_id, error) from error
    return verdicts.preflighted(submission, lab, steps, found, run)


def _rejected(submission: Submission, lab: LabSpec, steps: Sequence[LabStep], read: Rejection, mode: Mode) -> Verdict:
    facts = SandboxFacts(read.sandbox, read.isolated, None, None, None, None)
    reason = SubmissionRejected(read.code, read.feedback)
    return verdicts.rejected(submission, lab, steps, reason, facts, mode, run_id=read.run_id)


def cancelled(
    submission: Submission, run_id: str, why: str, mode: Mode = Mode.OFFICIAL, text: LabText | None = None
) -> Verdict:
    """The verdict on a run that an operator cancelled: none on what was handed in.

    It needs no check, nor the lab, which may be the reason for it: one that is installed no more, or is broken.

    Args:
        why: in the operator's words; may be empty.
        text: of the lab that the run was accepted with; the installed one if absent.
    """
    reason = SubmissionRejected(
        CANCELLED,
        "The course's staff cancelled this submission before it was graded."
        + (f" Their reason: {why.rstrip('.')}." if why else "")
        + " It does not count as an attempt, and nothing was found wrong with it. Hand it in again if you are asked "
        "to, or ask the staff.",
    )
    facts = SandboxFacts("none", isolated=False, image=None, image_digest=None, engine=None, gpu_access=None)
    lab, steps = _asked_for(submission, text)
    return verdicts.rejected(submission, lab, steps, reason, facts, mode, run_id=run_id)


def _asked_for(submission: Submission, text: LabText | None) -> tuple[LabSpec | None, tuple[LabStep, ...]]:
    """The lab and its steps, without their checks; nothing where it, or one of them, is gone, or it is broken."""
    try:
        lab = read_lab(text or lab_text(submission.lab), f"lab {submission.lab}")
        return lab, lab.selected(submission.steps)
    except UsageError:
        return None, ()


def _read(model: type[ModelT], document: bytes, run_id: str) -> ModelT:
    try:
        return model.model_validate_json(document)
    except ValueError as error:
        raise _unreadable(run_id, error) from error


def _unreadable(run_id: str, error: Exception) -> InfrastructureError:
    return InfrastructureError(f"the document of run {run_id} cannot be read: {str(error)[:500]}")
