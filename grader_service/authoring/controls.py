"""Runs the control submissions of a check and compares what comes out with what is known of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checks.api import Result
from checks.authoring.material import CONTROLS, CONTROLS_FILE, Control, read_controls
from checks.authoring.planted import leaks, told
from checks.authoring.report import Property, advice, examples, failed, passed, skipped
from checks.authoring.target import Target, source_of
from checks.raising import raised
from grader_service.authoring.trying import judge_evidence, run_submission
from grader_service.errors import ConfigurationError, SubmissionRejected
from grader_service.model.evidence import Evidence
from grader_service.model.verdict import Outcome
from grader_service.run.progress import Progress, Silent
from sandbox.api import SandboxRunner


@dataclass(frozen=True)
class JudgedControl:
    """A control that was run and judged."""

    control: Control
    evidence: Evidence | None
    """None where the submission was rejected."""
    result: Result | None
    problem: str
    """How it came out otherwise than expected; empty when it did not."""
    traceback: str = ""
    """Of what the check or one of its probes raised meanwhile."""


@dataclass(frozen=True)
class ControlCase:
    """A control that can be run."""

    target: Target
    folder: Path
    control: Control
    params: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its file below the folder of controls."""
        return self.control.file


def control_cases(target: Target) -> list[ControlCase]:
    """Every control of a check.

    Raises:
        ConfigurationError: `controls.toml` is wrong.
    """
    read = read_controls(target)
    if read is None:
        return []
    folder, controls = read
    return [ControlCase(target, folder, control, {**controls.params, **control.params}) for control in controls.control]


def judge_control(case: ControlCase, *, runner: SandboxRunner | None = None) -> JudgedControl:
    """Runs one control and judges it."""
    control = case.control
    try:
        evidence = run_submission(case.target, case.folder / control.file, case.params, runner=runner)
    except SubmissionRejected as error:
        return JudgedControl(control, None, None, f"{control.file} was rejected: {error}")
    try:
        result = judge_evidence(case.target.loaded, evidence, case.params)
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the author's code raises is to be told
        told = raised(error, ours=2)
        return JudgedControl(control, evidence, None, f"{control.file}: the check raised {told.text}", told.traceback)
    problem = ""
    if (result.outcome, result.code) != (control.outcome, control.code):
        problem = (
            f"{control.file}: expected {control.outcome.value} {control.code}, got {result.outcome.value} "
            f"{result.code} ({result.feedback[:300]}){_why(evidence)}"
        )
    elif secret := _leaked(case, evidence, result):
        problem = f"{control.file}: the feedback shows {secret}"
    trace = next((record.traceback for record in evidence.probes if record.traceback), "")
    return JudgedControl(control, evidence, result, problem, trace if problem else "")


def examine_controls(
    target: Target, *, runner: SandboxRunner | None = None, progress: Progress | None = None
) -> Property:
    """Whether every control comes out as its file says.

    Raises:
        ConfigurationError: `controls.toml` is wrong.
        InfrastructureError: a pod of ours does not start.
    """
    name = CONTROLS
    cases = control_cases(target)
    if not cases:
        return skipped(
            name,
            f"there is no {target.folders[0] / CONTROLS / CONTROLS_FILE}",
            "Keep one submission that passes and one that fails, with the codes that they give.",
        )
    progress = progress or Silent()
    bad = []
    for case in cases:
        progress.stage(f"control {case.name}")
        judged = judge_control(case, runner=runner)
        if judged.problem:
            bad.append(judged)
    if bad:
        todo = f"Fix the check, its probe, or what {CONTROLS_FILE} expects."
        trace = next((judged.traceback for judged in bad if judged.traceback), "")
        return failed(name, examples([judged.problem for judged in bad]), todo, trace)
    outcomes = {case.control.outcome for case in cases}
    listed = [f"{case.name} {case.control.code}" for case in cases[:6]]
    if len(cases) > len(listed):
        listed.append(f"and {len(cases) - len(listed)} more")
    text = f"{len(cases)} submissions came out as expected: {', '.join(listed)}"
    if not {Outcome.PASSED, Outcome.FAILED} <= outcomes:
        return advice(name, text, "Keep at least one control that passes and one that fails.")
    return passed(name, text)


def _why(evidence: Evidence) -> str:
    """What else is known, for the author."""
    parts = []
    discovery = evidence.discovery
    if discovery is not None and discovery.exception is not None:
        parts.append(f"the submission raised {discovery.exception.type}: {discovery.exception.message[:300]}")
    parts += [
        f"probe {record.id}: {record.status} {record.text[:300]}".strip()
        for record in evidence.probes
        if record.status != "ok"
    ]
    return f"; {'; '.join(parts)}" if parts else ""


def _leaked(case: ControlCase, evidence: Evidence, result: Result) -> str:
    shown = told(result)
    if found := leaks(shown, (*case.target.folders, source_of(case.target.loaded).parent)):
        return found[0]
    for what, mark in (("the seed", evidence.run.seed), ("the run's id", evidence.run.run_id)):
        if mark in shown:
            return what
    return "a file of the probe's" if "/probe-" in shown else ""
