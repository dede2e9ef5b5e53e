"""`grader submit`: posts a submission as a platform would."""

import base64
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from grader_service.cli.arguments import fresh_id, step_ids
from grader_service.cli.grade import EXIT_CODES
from grader_service.cli.output import console, error_console, write_text
from grader_service.cli.render import show_verdict
from grader_service.errors import InfrastructureError, UsageError
from grader_service.model.verdict import Verdict
from grader_service.service.message import MAX_INLINE_BYTES, SubmissionMessage
from grader_service.settings import Settings


class Queue(StrEnum):
    """Who waits."""

    LIVE = "live"
    REGRADE = "regrade"


def submit(  # noqa: PLR0917 - one parameter per option
    path: Annotated[Path, typer.Argument(help="A .py, .ipynb, .zip, .tar or .tar.gz submission.")],
    lab: Annotated[str, typer.Option(help="Id of the lab.")] = "dali-pipelines",
    queue: Annotated[Queue, typer.Option(help="live: a learner waits; regrade: bulk work.")] = Queue.LIVE,
    submission_id: Annotated[str | None, typer.Option(help="The platform's id; made up when not given.")] = None,
    learner: Annotated[str | None, typer.Option(help="Opaque id of the learner.")] = None,
    cohort: Annotated[str | None, typer.Option(help="Cohort.")] = None,
    steps: Annotated[str, typer.Option(help="Only these step ids, separated by commas.")] = "",
    wait_s: Annotated[float, typer.Option("--wait", min=0.0, help="Seconds to wait for the verdict.")] = 0.0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="With --wait: write the verdict as JSON.")
    ] = None,
) -> None:
    """Post one submission to the service, and print its id, or with --wait its verdict.

    Exit codes with --wait: as `grader grade`; 3 when no verdict came in time.
    """
    from grader_service.queue.app import make_app  # noqa: PLC0415 - Celery costs other commands half a second

    settings = Settings()
    message: dict[str, Any] = {
        "submission_id": submission_id or fresh_id("cli", path),
        "lab": lab,
        "learner": learner,
        "cohort": cohort,
        "artifact": _artifact(path, settings),
        "steps": list(step_ids(steps)),
    }
    try:
        SubmissionMessage.model_validate_json(json.dumps(message))
    except ValueError as error:
        raise UsageError(f"this cannot be posted: {error}") from error
    app = make_app(settings)
    try:
        sent = app.send_task("grader.grade", kwargs={"submission": message}, queue=queue.value, retry=False)
    except Exception as error:
        raise InfrastructureError(f"the broker at {settings.redis_url} did not take the message: {error}") from error
    if wait_s <= 0:
        console().print(message["submission_id"], markup=False)
        return
    error_console().print(f"posted {message['submission_id']}, waiting …", markup=False)
    try:
        document = sent.get(timeout=wait_s, interval=0.2)
    except Exception as error:
        raise InfrastructureError(
            f"no verdict came within {wait_s:g} s; `grader status {message['submission_id']}` says where it is"
        ) from error
    verdict = Verdict.model_validate_json(json.dumps(document))
    if json_file is not None:
        write_text(json_file, verdict.model_dump_json(indent=2) + "\n")
    if json_file != "-":
        show_verdict(console(), verdict)
    raise typer.Exit(EXIT_CODES[verdict.status])


def _artifact(path: Path, settings: Settings) -> dict[str, str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if len(data) <= MAX_INLINE_BYTES:
        return {"filename": path.name, "inline": base64.b64encode(data).decode()}
    from grader_service import wiring  # noqa: PLC0415 - see above

    store = wiring.open_artifacts(settings)
    digest = store.put(data)
    return {"filename": path.name, "uri": store.uri_of(digest), "sha256": digest}
