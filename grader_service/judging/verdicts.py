"""Makes verdicts: from judged checks, from a rejection, and from an infrastructure failure."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from grader_service import __version__
from grader_service.errors import GraderError, SubmissionRejected
from grader_service.judging import rubric
from grader_service.judging.checks import Judgement
from grader_service.model.base import neutralise
from grader_service.model.evidence import Evidence, Quoted, RunRecord
from grader_service.model.lab import LabSpec, LabStep
from grader_service.model.preflight import Preflight
from grader_service.model.run_report import RunReport
from grader_service.model.submission import Submission
from grader_service.model.verdict import CheckVerdict, Mode, Outcome, Provenance, Status, Verdict
from sandbox.api import SandboxFacts

_PASSED_FEEDBACK = "Every step passed."
_PREFLIGHT_CODES = {True: "preflight.ready", False: "preflight.missing", None: "preflight.needs_gpu"}


def compose(
    submission: Submission,
    lab: LabSpec,
    steps: Sequence[LabStep],
    judgement: Judgement,
    evidence: Evidence | Quoted,
) -> Verdict:
    """The verdict on a run whose checks have all answered; not signed yet."""
    checks = tuple(rubric.check_verdict(item) for item in judgement.checks)
    step_verdicts = tuple(rubric.step_verdict(step, checks) for step in steps)
    outcome = rubric.worst(step.outcome for step in step_verdicts)
    run, told = evidence.run, judgement.run
    code = "grade.passed" if outcome is Outcome.PASSED else _decisive(steps, checks, outcome, told)
    return Verdict(
        verdict_id=uuid.uuid4().hex,
        submission_id=submission.submission_id,
        run_id=run.run_id,
        lab=lab.id,
        lab_title=lab.title,
        learner=submission.learner,
        cohort=submission.cohort,
        mode=Mode.OFFICIAL if run.device == "cuda" else Mode.REHEARSAL,
        status=Status(outcome.value),
        code=code,
        feedback=_summary(steps, checks, told),
        score=rubric.total([step.score for step in step_verdicts]),
        max_score=sum(step.max_score for step in step_verdicts),
        created_at=datetime.now(UTC),
        steps=step_verdicts,
        run=told,
        checks=checks,
        measurement=evidence.measurement,
        provenance=_provenance(
            submission, lab, run, check_versions={item.check.id: item.version_text for item in judgement.checks}
        ),
    )


def _provenance(
    submission: Submission, lab: LabSpec, run: RunRecord, check_versions: Mapping[str, str] | None = None
) -> Provenance:
    return Provenance(
        submission_sha256=submission.sha256,
        filename=submission.filename,
        entry_point=run.entry_point,
        lab_version=lab.version,
        grader_version=__version__,
        check_versions=check_versions or {},
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
    )


def preflighted(
    submission: Submission, lab: LabSpec, steps: Sequence[LabStep], preflight: Preflight, run: RunRecord
) -> Verdict:
    """The answer to who asked for a preflight: no verdict on a submission, and so neither passed nor failed."""
    code, provenance = _PREFLIGHT_CODES[preflight.ready], _provenance(submission, lab, run)
    made = _without_checks(submission, lab, steps, Mode.PREFLIGHT, Status.UNVERIFIED, code, preflight.text, provenance)
    return made.model_copy(update={"run_id": run.run_id, "preflight": preflight})


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
    feedback, provenance = neutralise(error.feedback[:8000]), _not_run(submission, lab, sandbox)
    made = _without_checks(submission, lab, steps, mode, Status.REJECTED, error.code, feedback, provenance)
    return made if run_id is None else made.model_copy(update={"run_id": run_id})


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
    """The verdict of a grading without a queue in which the grader failed: it costs the learner nothing.

    It says nothing of our insides, and does not promise another run: the service, which tries again or asks an
    operator, makes no such verdict.
    """
    if error.retry:
        feedback = (
            "The grader itself failed, so this attempt does not count. Nothing runs again by itself: grade it once "
            "more, and tell the course's staff if that fails too."
        )
    else:
        feedback = (
            "A check of the grader failed, so this attempt does not count. Grading it once more would end in the same "
            "way: tell the course's staff, who have to mend the check first."
        )
    provenance = _not_run(submission, lab, sandbox)
    return _without_checks(submission, lab, steps, mode, Status.ERROR, "grader.failed", feedback, provenance)


def _not_run(submission: Submission, lab: LabSpec | None, sandbox: SandboxFacts) -> Provenance:
    return Provenance(
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
    )


def _without_checks(
    submission: Submission,
    lab: LabSpec | None,
    steps: Sequence[LabStep],
    mode: Mode,
    status: Status,
    code: str,
    feedback: str,
    provenance: Provenance,
) -> Verdict:
    return Verdict(
        verdict_id=uuid.uuid4().hex,
        submission_id=submission.submission_id,
        run_id=uuid.uuid4().hex,
        lab=submission.lab,
        lab_title=lab.title if lab else None,
        learner=submission.learner,
        cohort=submission.cohort,
        mode=mode,
        status=status,
        code=code,
        feedback=feedback,
        score=None,
        max_score=sum(check.points for step in steps for check in step.checks) if lab else None,
        created_at=datetime.now(UTC),
        provenance=provenance,
    )


def _decisive(steps: Sequence[LabStep], checks: Sequence[CheckVerdict], outcome: Outcome, run: RunReport) -> str:
    """The code of what gave the submission its outcome: the run's if it ended before a check was reached.

    Else that of the first such check; of hidden ones only that they did.
    """
    hidden = rubric.hidden_ids(steps)
    those = [check for check in rubric.needed_of(steps, checks) if check.counted is outcome]
    if run.stopped and any(check.unreached for check in those):
        return run.code
    return next((check.code for check in those if check.id not in hidden), f"grade.{outcome.value}")


def _summary(steps: Sequence[LabStep], checks: Sequence[CheckVerdict], run: RunReport) -> str:
    """One text for the learner: how the run ended if not well, what passed, and what the others say; advice last."""
    hidden_ids = rubric.hidden_ids(steps)
    needed = rubric.needed_of(steps, checks)
    hidden = [check for check in needed if check.id in hidden_ids]
    shown = [check for check in needed if check.id not in hidden_ids]
    advice = [check for check in checks if check not in needed and check.id not in hidden_ids]
    parts = []
    if run.stopped:
        parts.append(" ".join(filter(None, (run.outcome, run.further_cause, run.remedy))))
    if all(check.outcome is Outcome.PASSED for check in needed):
        parts.append(_PASSED_FEEDBACK)
    elif shown:
        parts.append(f"{len(shown) - len(_open(shown))} of {len(shown)} checks passed.")
    unreached = dict.fromkeys(check.step for check in shown if check.unreached)
    if unreached:
        parts.append(f"Not reached: {', '.join(unreached)}.")
    told = (*(check for check in _open(shown) if not check.unreached), *hidden)
    parts += [f"Step {check.step}: {check.feedback}" for check in told]
    parts += [f"Advice on step {check.step}, not needed to pass: {check.feedback}" for check in _open(advice)]
    return "\n".join(dict.fromkeys(parts))[:8000]


def _open(checks: Sequence[CheckVerdict]) -> list[CheckVerdict]:
    return [check for check in checks if check.outcome is not Outcome.PASSED]
