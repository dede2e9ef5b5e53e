"""`grader worker`: the service's processes."""

from typing import Annotated

import typer

from grader_service.cli.loading import group
from grader_service.logs import configure_logs
from grader_service.settings import Settings

app = group("Workers of the service: run, judge, regrade.")


@app.command("run")
def run(
    slot: Annotated[int, typer.Option(min=0, help="Numbers the workers of a host without GPUs.")] = 0,
) -> None:
    """Execute submissions on one device, until told to stop. Needs the Docker socket; loads no check.

    SIGTERM finishes what is in hand within GRADER_SOFT_SHUTDOWN_S, or gives it back to the queue.
    """
    from grader_service.queue.run_worker import run_worker  # noqa: PLC0415 - Celery costs other commands half a second

    configure_logs("runner")
    raise typer.Exit(run_worker(Settings(), slot=slot))


@app.command("judge")
def judge(
    children: Annotated[int, typer.Option(min=1, max=64, help="Processes that judge at the same time.")] = 1,
) -> None:
    """Take messages in, judge evidence and send verdicts, until told to stop. Needs neither Docker nor a GPU."""
    from grader_service.queue.judge_worker import judge_worker  # noqa: PLC0415 - see above

    configure_logs("judge")
    raise typer.Exit(judge_worker(Settings(), children=children))


@app.command("regrade")
def regrade(
    judges: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes that judge at the same time; one per core if absent.")
    ] = None,
) -> None:
    """Work on batches of re-grades, until told to stop. Needs no broker, no Docker and no GPU; yields to all others."""
    from grader_service.regrade.worker import default_judges, regrade_worker  # noqa: PLC0415 - see above

    configure_logs("regrade")
    raise typer.Exit(regrade_worker(Settings(), judges=judges or default_judges()))
