"""`grader worker`: the service's processes."""

from typing import Annotated

import typer

from grader_service.cli.output import console
from grader_service.errors import UsageError
from grader_service.logs import configure_logs
from grader_service.settings import Settings

app = typer.Typer(help="Workers of the service: run, judge, regrade.", no_args_is_help=True, rich_markup_mode=None)


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


@app.command("alive")
def alive(
    max_age: Annotated[float, typer.Option(min=1.0, help="Seconds since the worker last looked round.")] = 60.0,
    *,
    of_regrades: Annotated[bool, typer.Option("--regrade", help="Ask for the worker that re-grades.")] = False,
    device: Annotated[
        str | None, typer.Option(help="Ask for the runner of this device, where several share a state folder.")
    ] = None,
) -> None:
    """For health checks: exit code 0 when a worker of this state folder looked round lately, else 1."""
    from grader_service.service import pulse  # noqa: PLC0415 - see above

    if of_regrades and device is not None:
        raise UsageError("--regrade and --device ask for different workers; give one of them")
    file = pulse.REGRADE if of_regrades else pulse.ANY if device is None else pulse.of_device(device)
    age = pulse.age_s(Settings().state_dir, file)
    if age is None or age > max_age:
        console().print("no worker has looked round" + ("" if age is None else f" for {age:.0f} s"))
        raise typer.Exit(1)
    console().print(f"looked round {age:.0f} s ago")
