"""`grader submit`: posts a submission as a platform would."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from grader_service.cli import preflight_text
from grader_service.cli.arguments import fresh_id, operator, step_ids
from grader_service.cli.delivery import Delivery
from grader_service.cli.grade import EXIT_CODES
from grader_service.cli.output import ProgressDisplay, console, error_console
from grader_service.cli.packing import PATH_HELP, one_file
from grader_service.errors import InfrastructureError, UsageError
from grader_service.model.progress import ProgressEvent
from grader_service.report import words
from grader_service.service.message import MAX_INLINE_BYTES, ArtifactMessage, ReplyTo
from grader_service.settings import Settings


def submit(  # noqa: PLR0917 - one parameter per option
    path: Annotated[Path, typer.Argument(help=PATH_HELP)],
    lab: Annotated[str, typer.Option(help="Id of the lab.")] = "dali-pipelines",
    queue: Annotated[
        Literal["live", "regrade"], typer.Option(help="live: a learner waits; regrade: bulk work.")
    ] = "live",
    submission_id: Annotated[str | None, typer.Option(help="The platform's id; generated when not given.")] = None,
    learner: Annotated[str | None, typer.Option(help="Opaque id of the learner; your name when not given.")] = None,
    cohort: Annotated[str | None, typer.Option(help="Cohort.")] = None,
    steps: Annotated[str, typer.Option(help="Only these step ids, separated by commas.")] = "",
    wait_s: Annotated[float, typer.Option("--wait", min=0.0, help="Seconds to wait for the verdict.")] = 0.0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="With --wait: write the verdict as JSON.")
    ] = None,
    *,
    preflight: Annotated[bool, typer.Option("--preflight", help="Only check it, as `grader preflight` does.")] = False,
) -> None:
    """Post one submission to the service, and print its id, or with --wait its verdict.

    Exit codes with --wait: as `grader grade` or `grader preflight`; 3 also when no verdict came in time.
    """
    from grader_service.client import Client, MessageRejected, TryLater  # noqa: PLC0415 - other commands need no Redis

    if json_file is not None and wait_s <= 0:
        raise UsageError("--json writes the verdict, so it needs --wait SECONDS")
    settings = Settings()
    delivery = Delivery(json_file)
    delivery.check(path)
    name = submission_id or fresh_id("cli", path)
    told = _progress_to(name) if wait_s > 0 else None
    with one_file(path) as file, Client(settings.broker_address(), result_url=settings.results_address()) as client:
        posted = client.post(
            _artifact(file, settings),
            lab=lab,
            learner=learner or operator(),
            cohort=cohort,
            submission_id=name,
            steps=step_ids(steps),
            queue=queue,
            progress_to=told,
            mode="preflight" if preflight else "grade",
        )
        if wait_s <= 0:
            console().print(posted, markup=False, soft_wrap=True)
            return
        error_console().print(f"posted {posted}", markup=False)
        try:
            with ProgressDisplay.beside(json_file) as display:
                display.stage("waiting for the verdict")
                queue_of_ours = told.queue if told else None
                verdict = client.wait(posted, wait_s, progress_queue=queue_of_ours, on_progress=_Shown(display))
        except (MessageRejected, TryLater) as refusal:
            verdict = refusal.verdict
    whole = delivery.deliver(verdict, json.dumps(verdict.document, indent=2, ensure_ascii=False) + "\n")
    found = verdict.preflight
    code = EXIT_CODES[verdict.status] if found is None else preflight_text.EXIT_CODES[found.ready]
    raise typer.Exit(code if whole else InfrastructureError.exit_code)


def _progress_to(name: str) -> ReplyTo | None:
    """A queue for this submission alone; none where its id leaves no room, or is none, which posting it says."""
    try:
        return ReplyTo(queue=f"{name}.progress", task="progress")
    except ValueError:
        return None


class _Shown:
    """Shows what comes from the service as `grader grade` shows its own stages."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self._stage = ""

    def __call__(self, event: ProgressEvent) -> None:
        if event.stage != self._stage:
            self._stage = event.stage
            self._display.stage(words.stage(event.stage), limit_s=event.limit_s)
        self._display.running(event.elapsed_s, event.limit_s, event.line)


def _artifact(path: Path, settings: Settings) -> Path | ArtifactMessage:
    """The file itself, or where the artifact store has it when it is too large for a message."""
    try:
        if path.stat().st_size <= MAX_INLINE_BYTES:
            return path
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    from grader_service import wiring  # noqa: PLC0415 - see above

    store = wiring.open_artifacts(settings)
    digest = store.put(data)
    return ArtifactMessage(filename=path.name, uri=store.uri_of(digest), sha256=digest)
