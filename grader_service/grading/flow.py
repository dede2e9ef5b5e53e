"""The whole flow of one grading: artifact in, signed verdict out."""

import contextlib
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service import verdicts
from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.grading.pod_set import Device
from grader_service.grading.progress import Progress
from grader_service.grading.run import execute
from grader_service.host import Gpu
from grader_service.ingest.artifact import Artifact
from grader_service.judge_process import JudgeProcess
from grader_service.judging import needs_of
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec, threshold_of
from grader_service.model.submission import Submission
from grader_service.model.verdict import Mode, Verdict
from grader_service.probe_plan import wanted_probes
from grader_service.signing import Signer
from sandbox.api import SandboxRunner


@dataclass(frozen=True)
class Bench:
    """What a grading is done with."""

    lab: LabSpec
    registry: Registry
    runner: SandboxRunner
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
    bench: Bench,
    progress: Progress,
    afterwards: contextlib.ExitStack | None = None,
) -> Graded:
    """Grades one submission. What goes wrong is in the verdict; an infrastructure failure is returned as well.

    Args:
        submission: which steps, and what the verdict says about it.
        artifact: the bytes as sent.
        bench: what it is done with.
        progress: hears about stages and blocks.
        afterwards: see `execute`.

    Raises:
        UsageError: the submission names steps that the lab does not have.
    """
    steps = bench.lab.selected(submission.steps)
    mode = Mode.OFFICIAL if bench.device == "cuda" else Mode.REHEARSAL
    sign = bench.signer.sign
    evidence: Evidence | None = None
    own = contextlib.nullcontext(bench.judging) if bench.judging else JudgeProcess(check_files=bench.check_files)
    try:
        with own as judging:
            needs = needs_of(steps, bench.registry)
            probes = wanted_probes(steps, bench.registry, bench.probes)
            judging.start()  # imports the checks while the submission runs
            outcome = execute(
                artifact,
                bench.lab,
                needs,
                bench.runner,
                bench.device,
                progress,
                run_id=uuid.uuid4().hex,
                gpu=bench.gpu,
                threshold=threshold_of(bench.lab),
                probes=probes,
                afterwards=afterwards,
            )
            evidence = outcome.evidence
            progress.stage("judging", key="judging")
            judgement = judging.judge(evidence, steps, bench.registry)
    except SubmissionRejected as error:
        return Graded(sign(verdicts.rejected(submission, bench.lab, steps, error, bench.runner.facts, mode)))
    except InfrastructureError as error:
        verdict = verdicts.our_failure(submission, bench.lab, steps, error, bench.runner.facts, mode)
        return Graded(sign(verdict), evidence, failure=error)
    verdict = verdicts.compose(submission, bench.lab, steps, judgement, evidence)
    return Graded(sign(verdict), evidence)
