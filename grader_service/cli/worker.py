"""`grader worker`: the service's processes."""

from typing import Annotated

import typer

from grader_service.cli.loading import group
from grader_service.logs import configure_logs
from grader_service.settings import Settings

app = group("Workers of the service: run, judge, regrade.")


@app.command("run")
def run(
    slot: Annotated[int, typer.Option(min=0, help="Number of this worker on a host without GPUs.")] = 0,
) -> None:
    """Execute submissions on one device until stopped. Needs the Docker socket; loads no check.

    On SIGTERM it finishes the current run within GRADER_SOFT_SHUTDOWN_S, or returns it to the queue.
    """
    from grader_service.queue.run_worker import run_worker  # noqa: PLC0415 - Celery costs other commands half a second

    configure_logs("runner")
    raise typer.Exit(run_worker(Settings(), slot=slot))


@app.command("judge")
def judge(
    children: Annotated[int, typer.Option(min=1, max=64, help="Number of processes that judge.")] = 1,
) -> None:
    """Take messages, judge evidence and send verdicts until stopped. Needs neither Docker nor a GPU."""
    from grader_service.queue.judge_worker import judge_worker  # noqa: PLC0415 - see above

    configure_logs("judge")
    raise typer.Exit(judge_worker(Settings(), children=children))


@app.command("regrade")
def regrade(
    judges: Annotated[
        int | None, typer.Option(min=1, max=64, help="Number of processes that judge; by default one per core.")
    ] = None,
) -> None:
    """Work on batches of re-grades until stopped. Needs no broker, Docker or GPU; all other work comes first."""
    from grader_service.regrade.worker import default_judges, regrade_worker  # noqa: PLC0415 - see above

    configure_logs("regrade")
    raise typer.Exit(regrade_worker(Settings(), judges=judges or default_judges()))
