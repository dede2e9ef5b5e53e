"""Makes verdicts: from judged checks, from a rejection, and from a failure of ours."""

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from grader_service import __version__, rubric
from grader_service.errors import GraderError, SubmissionRejected
from grader_service.judging import Judged
from grader_service.model.base import neutralise
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec, LabStep
from grader_service.model.quoted import Quoted
from grader_service.model.submission import Submission
from grader_service.model.verdict import CheckVerdict, Mode, Outcome, Provenance, Status, Verdict
from sandbox.api import SandboxFacts

_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")
_WORTH_SAYING_ONCE = 40
"""Characters; shorter sentences are no bother, and may mean something else in another place."""
_PASSED_FEEDBACK = "Every step passed."


def compose(
    submission: Submission,
    lab: LabSpec,
    steps: Sequence[LabStep],
    judged: Sequence[Judged],
    evidence: Evidence | Quoted,
) -> Verdict:
    """The verdict on a run whose checks have all answered; not signed yet."""
    checks = tuple(rubric.check_verdict(item) for item in judged)
    step_verdicts = tuple(rubric.step_verdict(step, checks) for step in steps)
    outcome = rubric.worst(step.outcome for step in step_verdicts)
    code = "grade.passed" if outcome is Outcome.PASSED else _decisive(steps, checks, outcome)
    run = evidence.run
    return Verdict(
        verdict_id=uuid.uuid4().hex,
        submission_id=submission.submission_id,
        run_id=run.run_id,
        lab=lab.id,
        learner=submission.learner,
        cohort=submission.cohort,
        mode=Mode.OFFICIAL if run.device == "cuda" else Mode.REHEARSAL,
        status=rubric.status_of(outcome),
        code=code,
        feedback=_summary(steps, checks),
        score=rubric.total([step.score for step in step_verdicts]),
        max_score=sum(step.max_score for step in step_verdicts),
        created_at=datetime.now(UTC),
        steps=step_verdicts,
        checks=checks,
        measurement=evidence.measurement,
        provenance=Provenance(
            submission_sha256=submission.sha256,
            filename=submission.filename,
            entry_point=run.entry_point,
            lab_version=lab.version,
            grader_version=__version__,
            check_versions={item.check.id: item.version_text for item in judged},
            sandbox=run.sandbox,
            isolated=run.isolated,
            image=run.image,
            image_digest=run.image_digest,
            engine=run.engine,
            oci_runtime=runtime if isinstance(runtime := run.host.get("oci_runtime"), str) else None,
            host=rubric.plain(run.host),
            gpu=rubric.plain(run.gpu),
            versions=dict(run.versions),
            seed=run.seed,
            timings_s=dict(run.timings_s),
            gpu_held_s=run.gpu_held_s,
            reused_from=run.reused_from,
        ),
    )


def rejected(
    submission: Submission,
    lab: LabSpec | None,
    steps: Sequence[LabStep],
    error: SubmissionRejected,
    sandbox: SandboxFacts,
    mode: Mode,
    *,
    run_id: str | None = None,
) -> Verdict:
    """The verdict on a submission that could not be run at all; without a lab, where that is not known any more."""
    return _without_run(submission, lab, steps, sandbox, mode, Status.REJECTED, error.code, error.feedback, run_id)


def refused(submission_id: str, lab_id: str, code: str, feedback: str) -> Verdict:
    """The answer to a message that was not accepted: nothing of it is kept but this."""
    return Verdict(
        verdict_id=uuid.uuid4().hex,
        submission_id=submission_id,
        run_id="none",
        lab=lab_id,
        learner=None,
        cohort=None,
        mode=Mode.OFFICIAL,
        status=Status.REJECTED,
        code=code,
        feedback=neutralise(feedback[:8000]),
        score=None,
        max_score=None,
        created_at=datetime.now(UTC),
        provenance=Provenance(grader_version=__version__),
    )


def our_failure(
    submission: Submission,
    lab: LabSpec,
    steps: Sequence[LabStep],
    error: GraderError,
    sandbox: SandboxFacts,
    mode: Mode,
) -> Verdict:
    """The verdict when the grader failed: it costs the learner nothing, and says nothing of our insides."""
    del error
    feedback = "The grader itself failed, so this attempt does not count. It will be run again."
    return _without_run(submission, lab, steps, sandbox, mode, Status.ERROR, "grader.failed", feedback)


def _without_run(  # noqa: PLR0917 - every part of a verdict without a run
    submission: Submission,
    lab: LabSpec | None,
    steps: Sequence[LabStep],
    sandbox: SandboxFacts,
    mode: Mode,
    status: Status,
    code: str,
    feedback: str,
    run_id: str | None = None,
) -> Verdict:
    return Verdict(
        verdict_id=uuid.uuid4().hex,
        submission_id=submission.submission_id,
        run_id=run_id or uuid.uuid4().hex,
        lab=submission.lab,
        learner=submission.learner,
        cohort=submission.cohort,
        mode=mode,
        status=status,
        code=code,
        feedback=neutralise(feedback[:8000]),
        score=None,
        max_score=sum(check.points for step in steps for check in step.checks) if lab else None,
        created_at=datetime.now(UTC),
        provenance=Provenance(
            submission_sha256=submission.sha256,
            filename=submission.filename,
            lab_version=lab.version if lab else None,
            grader_version=__version__,
            sandbox=sandbox.name,
            isolated=sandbox.isolated,
            image=sandbox.image,
            image_digest=sandbox.image_digest,
            engine=sandbox.engine,
            oci_runtime=sandbox.oci_runtime,
        ),
    )


def _decisive(steps: Sequence[LabStep], checks: Sequence[CheckVerdict], outcome: Outcome) -> str:
    """The code of the first check that gave the submission its outcome; of hidden ones only that they did."""
    hidden = rubric.hidden_ids(steps)
    those = (check for check in rubric.needed_of(steps, checks) if check.outcome is outcome and check.id not in hidden)
    return next((check.code for check in those), f"grade.{outcome.value}")


def _summary(steps: Sequence[LabStep], checks: Sequence[CheckVerdict]) -> str:
    """One text for the learner: how many checks passed, and what the others say; advice comes last."""
    hidden_ids = rubric.hidden_ids(steps)
    needed = rubric.needed_of(steps, checks)
    hidden = [check for check in needed if check.id in hidden_ids]
    shown = [check for check in needed if check.id not in hidden_ids]
    advice = [check for check in checks if check not in needed and check.id not in hidden_ids]
    parts = []
    if all(check.outcome is Outcome.PASSED for check in needed):
        parts.append(_PASSED_FEEDBACK)
    else:
        if shown:
            parts.append(f"{len(shown) - len(_open(shown))} of {len(shown)} checks passed.")
        parts += [f"Step {check.step}: {check.feedback}" for check in (*_open(shown), *hidden)]
    parts += [f"Advice on step {check.step}, not needed to pass: {check.feedback}" for check in _open(advice)]
    return " ".join(_said_once(parts))[:8000]


def _said_once(parts: Sequence[str]) -> list[str]:
    """The same texts without the long sentences that one before has said, such as where the code stopped."""
    said: set[str] = set()
    kept = []
    for part in parts:
        sentences = _SENTENCE.split(part)
        kept.append(" ".join(text for text in sentences if text not in said))
        said.update(text for text in sentences if len(text) >= _WORTH_SAYING_ONCE)
    return [part for part in kept if part]


def _open(checks: Sequence[CheckVerdict]) -> list[CheckVerdict]:
    return [check for check in checks if check.outcome is not Outcome.PASSED]
