"""`grader grade`: one submission, no queue.

What grades is imported by the command: others should not wait for it.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from checks.authoring.target import probe_folders
from checks.probe_files import ProbeFiles
from checks.registry import LoadedCheck, Registry, load_file
from grader_service.cli.arguments import fresh_id, step_ids
from grader_service.cli.delivery import Delivery
from grader_service.cli.output import ProgressDisplay, tell
from grader_service.cli.packing import PATH_HELP, one_file
from grader_service.errors import ConfigurationError, InfrastructureError, UsageError
from grader_service.host.facts import Gpu, find_gpus
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import named_lab
from grader_service.model.evidence import Evidence
from grader_service.model.lab import LabSpec
from grader_service.model.submission import Submission
from grader_service.model.verdict import Status
from grader_service.report.audience import Audience
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.model.base import Device
    from sandbox.api import SandboxRunner

EXIT_CODES = {
    Status.PASSED: 0,
    Status.FAILED: 1,
    Status.ERROR: 3,
    Status.INCONCLUSIVE: 4,
    Status.UNVERIFIED: 4,
    Status.REJECTED: 5,
}


DeviceChoice = Literal["auto", "cuda", "cpu"]
SandboxChoice = Literal["docker", "kubernetes", "process"]
LabOption = Annotated[str, typer.Option(metavar="ID|FILE", help="Id of the lab, or its file.")]
DeviceOption = Annotated[DeviceChoice, typer.Option(help="cpu is a rehearsal: complete, but not a grade.")]
SandboxOption = Annotated[SandboxChoice, typer.Option(help="process has no isolation: for code that you trust.")]


def opened(sandbox: SandboxChoice, image: str, settings: Settings, gpu: Gpu | None = None) -> "SandboxRunner":
    """A runner, once what others left behind is gone; who chose one without isolation is told so."""
    from grader_service.host.sandboxes import open_runner

    runner = open_runner(sandbox, image, settings, gpu)
    if sandbox == "process":
        tell(
            "grader: --sandbox process runs the submission without isolation; use it for code that you trust", "yellow"
        )
    runner.sweep()
    return runner


def grade(  # noqa: PLR0917 - one parameter per option
    path: Annotated[Path, typer.Argument(help=PATH_HELP)],
    lab: LabOption = "dali-pipelines",
    device: DeviceOption = "auto",
    sandbox: SandboxOption = "docker",
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE|-", help="Write the verdict as JSON; - is standard output."),
    ] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE.html", help="Write a report that opens offline.")] = None,
    audience: Annotated[
        Audience,
        typer.Option("--for", help="Reader of output and report; staff also see codes, details and provenance."),
    ] = Audience.LEARNER,
    steps: Annotated[str, typer.Option(help="Only these step ids, separated by commas.")] = "",
    evidence: Annotated[str | None, typer.Option(metavar="FILE", help="Write the evidence too, for staff.")] = None,
    submission_id: Annotated[str | None, typer.Option(help="Id to put into the verdict.")] = None,
    learner: Annotated[str | None, typer.Option(help="Learner to put into the verdict.")] = None,
    cohort: Annotated[str | None, typer.Option(help="Cohort to put into the verdict.")] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Try this check without installing it, as the step `tried`.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A parameter of that check, with a TOML value.")
    ] = None,
) -> None:
    """Grade one submission and print the verdict.

    --check adds a last step `tried` to the lab, and the verdict names the file; --steps tried grades only that step.

    Exit codes: 0 passed, 1 failed, 2 usage, 3 our fault or a file could not be written, 4 inconclusive or unverified,
    5 rejected. The verdict is printed in any case.
    """
    from grader_service.authoring.trying import OneCheck
    from grader_service.service.local import GradeDeps
    from grader_service.service.local import grade as grade_submission
    from grader_service.signer.chosen import signer_of

    delivery = Delivery(json_file, evidence, report, audience)
    delivery.check(path)
    settings = Settings()
    loaded = None if check is None else load_file(check)
    registry = Registry() if loaded is None else OneCheck(loaded)
    spec = _with_tried(named_lab(lab, Registry()), loaded, param or [], step_ids(steps))
    spec.selected(step_ids(steps))
    with ExitStack() as stack:
        file = stack.enter_context(one_file(path))
        artifact = artifact_at(file)
        submission = Submission(
            submission_id=submission_id or fresh_id("local", file),
            lab=spec.id,
            learner=learner,
            cohort=cohort,
            filename=file.name[:200],
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            steps=step_ids(steps),
        )
        chosen, gpu = taken_device(stack, device, settings)
        runner = opened(sandbox, spec.image, settings, gpu)
        deps = GradeDeps(
            spec,
            registry,
            runner,
            chosen,
            signer_of(settings),
            gpu,
            ProbeFiles(folders=() if check is None else probe_folders(check)),
            () if check is None else (check.resolve(),),
        )
        progress = stack.enter_context(ProgressDisplay.beside(json_file))
        graded = grade_submission(submission, artifact, deps, progress)
    verdict = graded.verdict
    whole = delivery.deliver(verdict, verdict.model_dump_json(indent=2) + "\n", graded.evidence)
    _show_raised(graded.evidence)
    if graded.failure is not None:
        raise graded.failure
    raise typer.Exit(EXIT_CODES[verdict.status] if whole else InfrastructureError.exit_code)


def _show_raised(evidence: Evidence | None) -> None:
    """What probes raised, for their authors: the verdict says of it only that nothing could be observed."""
    for record in evidence.probes if evidence is not None else ():
        if record.traceback:
            tell(f"\ngrader: probe {record.id} {record.version} raised:", "yellow")
            tell(record.traceback, "dim")


def _with_tried(spec: LabSpec, loaded: LoadedCheck | None, param: list[str], steps: tuple[str, ...]) -> LabSpec:
    if loaded is None:
        if param:
            raise UsageError("--param needs --check: it sets a parameter of the check in that file")
        return spec
    tell(f"grader: check {loaded.check.id} is tried from a {loaded.distribution}; the verdict says so", "yellow")
    from grader_service.authoring.trying import read_params, with_tried

    return with_tried(spec, loaded, read_params(param), steps)


def taken_device(stack: ExitStack, choice: DeviceChoice, settings: Settings) -> "tuple[Device, Gpu | None]":
    """The first GPU that nobody holds, held until the stack ends: two measurements on it would contaminate both."""
    from grader_service import wiring

    if choice == "cpu":
        return "cpu", None
    gpus = [gpu for gpu in find_gpus() if gpu.mig is None or gpu.mig.alone]
    for gpu in gpus:
        try:
            stack.enter_context(wiring.held(settings, gpu))
        except ConfigurationError:
            if gpu is gpus[-1]:
                raise
        else:
            return "cuda", gpu
    if choice == "cuda":
        raise ConfigurationError("--device cuda: this host has no working NVIDIA driver or GPU; see `grader doctor`")
    return "cpu", None
