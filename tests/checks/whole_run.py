"""A whole submission, run for real in a sandbox and judged by some checks."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from checks.api import Result
from checks.probe_files import ProbeFiles
from checks.registry import Registry
from grader_service.ingest.artifact import artifact_at
from grader_service.judging.checks import judge
from grader_service.judging.probe_plan import wanted_probes
from grader_service.labs.specs import lab_text, read_lab
from grader_service.measure.measuring import measure
from grader_service.model.evidence import Evidence, Need, RunTask
from grader_service.model.lab import LabCheck, LabStep
from grader_service.run.execution import execute
from grader_service.run.progress import Silent


def run_and_judge(
    path: Path, checks: Mapping[str, Mapping[str, Any]], needs: Sequence[Need], runner: Any
) -> tuple[Evidence, dict[str, Result]]:
    """The evidence of a rehearsal, and the result of each check, given by name with its parameters."""
    asked = tuple(LabCheck(id=name, points=1, params=params) for name, params in checks.items())
    step = LabStep(id="checks", title="Checks", checks=asked)
    registry = Registry()
    needed = RunTask(needs=tuple(needs))
    outcome = execute(
        artifact_at(path),
        read_lab(lab_text("dali-pipelines"), "dali-pipelines"),
        needed,
        runner,
        "cpu",
        Silent(),
        run_id=uuid.uuid4().hex,
        measure=measure,
        probes=wanted_probes([step], registry, ProbeFiles()),
    )
    return outcome.evidence, {one.check.id: one.result for one in judge(outcome.evidence, [step], registry).checks}
