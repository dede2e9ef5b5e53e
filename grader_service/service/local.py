"""Grades one submission in one process, from run to judge, without queue and store: `grader grade`."""

import contextlib
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.host.facts import Gpu
from grader_service.ingest.artifact import Artifact
from grader_service.judging import verdicts
from grader_service.judging.preflighting import preflight_of
from grader_service.judging.process import JudgeProcess
from grader_service.measure.measuring import measure, try_graph
from grader_service.model.base import Device
from grader_service.model.evidence import Evidence, Rejection
from grader_service.model.lab import LabSpec
from grader_service.model.preflight import Preflight
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Verdict
from grader_service.run.execution import execute
from grader_service.run.progress import Progress
from grader_service.service.run_planning import plan_run
from grader_service.service.verdict_making import verdict_on
from grader_service.signer.signatures import Signer
from sandbox.api import SandboxRunner


@dataclass(frozen=True)
class GradeDeps:
    """Dependencies of a grading in one process."""

    lab: LabSpec
    registry: Registry
    sandbox: SandboxRunner
    device: Device
    signer: Signer
    gpu: Gpu | None = None
    probes: ProbeFiles = field(default_factory=ProbeFiles)
    check_files: tuple[Path, ...] = ()
    """Checks that are tried from a file; the registry knows them too."""
    judging: JudgeProcess | None = None
    """A warm process to judge with, which stays its owner's; None for one of this grading's own."""


@dataclass(frozen=True)
class Graded:
    """A verdict, the evidence behind it, and our failure if there was one."""

    verdict: Verdict
    evidence: Evidence | None = None
    failure: InfrastructureError | None = None


def grade(
    submission: Submission,
    artifact: Artifact,
    deps: GradeDeps,
    progress: Progress,
    afterwards: contextlib.ExitStack | None = None,
) -> Graded:
    """Grades one submission. What goes wrong is in the verdict; an infrastructure failure is returned as well.

    Args:
        submission: which steps, and what the verdict says about it.
        afterwards: see `run.execution.execute`.

    Raises:
        UsageError: the submission names steps that the lab does not have.
    """
    lab, sandbox, sign = deps.lab, deps.sandbox, deps.signer.sign
    steps, run_id = lab.selected(submission.steps), uuid.uuid4().hex
    evidence: Evidence | None = None
    own = contextlib.nullcontext(deps.judging) if deps.judging else JudgeProcess(check_files=deps.check_files)
    try:
        with own as judging:
            planned = plan_run(lab, submission.steps, deps.registry, deps.probes)
            judging.start()  # imports the checks while the submission runs
            try:
                outcome = execute(
                    artifact,
                    lab,
                    planned.task,
                    sandbox,
                    deps.device,
                    progress,
                    run_id=run_id,
                    measure=measure,
                    gpu=deps.gpu,
                    probes=planned.probes,
                    submitter=submission.learner,
                    afterwards=afterwards,
                )
            except SubmissionRejected as error:
                name, isolated = sandbox.facts.name, sandbox.facts.isolated
                found = Rejection.of(error, run_id=run_id, device=deps.device, sandbox=name, isolated=isolated)
                kind, document = "rejection", found.model_dump_json()
            else:
                progress.stage("judging", key="judging")
                evidence = outcome.evidence
                kind, document = "evidence", evidence.model_dump_json()
            verdict = verdict_on(submission, lab, run_id, kind, document.encode(), deps.registry, judging)
    except InfrastructureError as error:
        mode = Mode.OFFICIAL if deps.device == "cuda" else Mode.REHEARSAL
        verdict = verdicts.our_failure(submission, lab, steps, error, sandbox.facts, mode)
        return Graded(sign(verdict), evidence, failure=error)
    return Graded(sign(verdict), evidence)


def preflight(
    artifact: Artifact,
    lab: LabSpec,
    registry: Registry,
    sandbox: SandboxRunner,
    progress: Progress,
    afterwards: contextlib.ExitStack | None = None,
) -> Preflight:
    """Runs a submission once on the CPU and looks at what it leaves behind; nothing is measured or kept.

    Args:
        lab: with its checks' parameters validated.
        afterwards: ends pods and removes what the run leaves, once it is closed; None to do so before the answer.

    Raises:
        SubmissionRejected: the artifact is unusable; no learner code ran.
        InfrastructureError: ours.
    """
    task = plan_run(lab, (), registry, ProbeFiles(), preflight=True).task
    outcome = execute(
        artifact,
        lab,
        task,
        sandbox,
        "cpu",
        progress,
        run_id=uuid.uuid4().hex,
        measure=try_graph,
        afterwards=afterwards,
        preflight=True,
    )
    return preflight_of(outcome.evidence, lab, lab.steps, registry)
