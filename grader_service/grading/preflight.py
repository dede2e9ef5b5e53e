"""The whole flow of a preflight: artifact in, what is there and what is missing out; nothing is measured or kept."""

import uuid
from contextlib import ExitStack

from checks.registry import Registry
from grader_service.grading.progress import Progress
from grader_service.grading.run import execute
from grader_service.ingest.artifact import Artifact
from grader_service.model.lab import LabSpec
from grader_service.model.preflight import Preflight
from grader_service.preflighting import images_needed, preflight_needs, preflight_of
from sandbox.api import SandboxRunner


def preflight(
    artifact: Artifact,
    lab: LabSpec,
    registry: Registry,
    runner: SandboxRunner,
    progress: Progress,
    afterwards: ExitStack | None = None,
) -> Preflight:
    """Runs a submission once on the CPU and looks at what it leaves behind.

    Args:
        artifact: the bytes as sent.
        lab: with its checks' parameters validated.
        registry: with its checks.
        runner: where pods run.
        progress: hears about stages.
        afterwards: ends pods and removes what the run leaves, once it is closed; None to do so before the answer.

    Raises:
        SubmissionRejected: the artifact is unusable; no learner code ran.
        InfrastructureError: ours.
    """
    needs = preflight_needs(lab.steps, registry)
    run_id = uuid.uuid4().hex
    outcome = execute(
        artifact,
        lab,
        needs,
        runner,
        "cpu",
        progress,
        run_id=run_id,
        afterwards=afterwards,
        preflight=True,
        enough_images=images_needed(lab.steps, registry),
    )
    return preflight_of(outcome.evidence, lab, lab.steps, registry)
