"""Runs one submission: what comes of it is evidence, or the reason why it could not be run. Loads no check."""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from grader_service.errors import SubmissionRejected
from grader_service.host.facts import Gpu
from grader_service.ingest.artifact import Artifact
from grader_service.measure.kept_references import KeptReferences
from grader_service.measure.measuring import measure, try_graph
from grader_service.model.base import Device
from grader_service.model.evidence import ProbeTask, Rejection, RunTask
from grader_service.model.lab import LabSpec
from grader_service.run.execution import RunOutcome, execute
from grader_service.run.progress import Progress
from sandbox.api import SandboxRunner


def run(
    submitter: str | None,
    artifact: Artifact,
    lab: LabSpec,
    task: RunTask,
    probes: Sequence[ProbeTask],
    sandbox: SandboxRunner,
    device: Device,
    progress: Progress,
    *,
    run_id: str,
    gpu: Gpu | None = None,
    references: KeptReferences | None = None,
    afterwards: ExitStack | None = None,
    preflight: bool = False,
) -> RunOutcome | Rejection:
    """Executes a submission; see `run.execution.execute` for what is not said here.

    Args:
        submitter: who hands in, by whatever name; None where the content has to stand for somebody.
        references: rates of our reference that were taken between runs; None to measure it in every run.
        preflight: it is only looked at: the graph is tried on few images, and nothing is timed.

    Returns:
        What the run leaves; or, where the artifact is unusable and no code of it ran, why.

    Raises:
        InfrastructureError: ours.
    """
    try:
        return execute(
            artifact,
            lab,
            task,
            sandbox,
            device,
            progress,
            run_id=run_id,
            measure=try_graph if preflight else partial(measure, references=references),
            gpu=gpu,
            probes=probes,
            submitter=submitter,
            afterwards=afterwards,
            preflight=preflight,
        )
    except SubmissionRejected as rejection:
        facts = sandbox.facts
        return Rejection(
            run_id=run_id,
            device=device,
            sandbox=facts.name,
            isolated=facts.isolated,
            code=rejection.code,
            feedback=rejection.feedback,
        )
