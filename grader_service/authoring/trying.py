"""Tries a check that is not part of any lab: as a step of its own, with its probes, on one submission."""

import tomllib
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from checks.api import Result
from checks.authoring.target import Target
from checks.registry import LoadedCheck, Registry
from grader_service.errors import ConfigurationError, UsageError
from grader_service.host.sandboxes import open_runner
from grader_service.ingest.artifact import artifact_at
from grader_service.measure.measuring import measure
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabCheck, LabSpec, LabStep, PodLimits
from grader_service.run.execution import execute
from grader_service.run.progress import Progress, Silent
from grader_service.service.run_planning import plan_run
from grader_service.settings import Settings
from sandbox.api import SandboxRunner

STEP = "tried"
POINTS = 1.0
LEARNER_LIMIT_S = 300.0


class OneCheck(Registry):
    """The installed checks, and one that is not."""

    def __init__(self, loaded: LoadedCheck) -> None:
        super().__init__()
        self._loaded[loaded.check.id] = loaded


def tried_step(check_id: str, params: Mapping[str, Any]) -> LabStep:
    """A step with nothing but this check."""
    return LabStep(
        id=STEP,
        title="A check that is tried",
        checks=(LabCheck(id=check_id, points=POINTS, params=dict(params)),),
    )


def with_tried(lab: LabSpec, loaded: LoadedCheck, params: Mapping[str, Any], steps: Sequence[str]) -> LabSpec:
    """The lab with the check as a last step, `tried`; `steps` are those that are asked for, all if empty.

    Raises:
        UsageError: the check does not take the parameters, or the lab has a check of this id among those steps.
    """
    check_id = loaded.check.id
    try:
        parsed_params(loaded, params)
    except ConfigurationError as error:
        raise UsageError(str(error)) from error
    others = [step for step in lab.steps if not steps or step.id in steps]
    if any(check.id == check_id for step in others for check in step.checks):
        raise UsageError(
            f"lab {lab.id} has a check {check_id!r} of its own; with `--steps {STEP}` the file is tried alone"
        )
    kept = [step for step in lab.steps if all(check.id != check_id for check in step.checks)]
    return lab.model_copy(update={"steps": (*kept, tried_step(check_id, params))})


def read_params(pairs: Sequence[str]) -> dict[str, Any]:
    """Parameters from `key=value`, whose values are written as in TOML; a bare word is a string.

    Raises:
        UsageError: a pair is not of that form, or a key stands twice.
    """
    params: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"--param {pair!r}: expected key=value, such as --param least=3")
        if key in params:
            raise UsageError(f"--param {key} is given twice")
        try:
            params[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError as error:
            if not text.replace("_", "").replace("-", "").isalnum():
                raise UsageError(f"--param {pair!r}: {text!r} is not a TOML value: {error}") from error
            params[key] = text
    return params


def run_submission(
    target: Target,
    submission: Path,
    params: Mapping[str, Any] | None = None,
    *,
    runner: SandboxRunner | None = None,
    progress: Progress | None = None,
) -> Evidence:
    """Runs a submission on the CPU with what one check needs, and returns what was seen.

    Args:
        target: the check.
        submission: a file that can be graded; it is trusted unless the runner isolates.
        params: of the check; probes see them.
        runner: where pods run; plain processes of this machine if absent.
        progress: hears about stages.

    Raises:
        SubmissionRejected: it is no submission.
        InfrastructureError: ours.
    """
    loaded = target.loaded
    step = tried_step(loaded.check.id, params or {})
    lab = LabSpec(
        schema_id="grader.lab/v1",
        id=STEP,
        version="0.0.0",
        title=step.title,
        steps=(step,),
        limits=PodLimits(learner_timeout_s=LEARNER_LIMIT_S),
    )
    if not submission.is_file():
        raise UsageError(f"{submission} is not a file; expected a .py, .ipynb, .zip, .tar or .tar.gz submission")
    planned = plan_run(lab, (), OneCheck(loaded), target.probes)
    outcome = execute(
        artifact_at(submission),
        lab,
        planned.task,
        runner or open_runner("process", lab.image, Settings(), None),
        "cpu",
        progress or Silent(),
        run_id=uuid.uuid4().hex,
        measure=measure,
        probes=planned.probes,
    )
    return outcome.evidence


def judge_evidence(loaded: LoadedCheck, evidence: Evidence, params: Mapping[str, Any] | None = None) -> Result:
    """What a check answers to evidence, in this process; what the check raises is raised.

    Raises:
        ConfigurationError: it does not take the parameters.
    """
    return loaded.check.answer(evidence, parsed_params(loaded, params or {})).result


def parsed_params(loaded: LoadedCheck, params: Mapping[str, Any]) -> BaseModel:
    """The parameters as the check takes them.

    Raises:
        ConfigurationError: it does not take them; the message says which, and what was expected.
    """
    try:
        return loaded.parse_params(params)
    except ValidationError as error:
        message = f"check {loaded.check.id!r} does not take these parameters: {'; '.join(loaded.told(error))}"
        raise ConfigurationError(message) from None
