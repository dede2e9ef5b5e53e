"""`grader worker`: the service's processes."""

from typing import TYPE_CHECKING, Annotated

import typer

from grader_service.cli.output import console
from grader_service.errors import UsageError
from grader_service.logs import configure_logs
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.service.pulse import Pulse

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


MaxAge = Annotated[float, typer.Option(min=1.0, help="Seconds since the worker last looked round.")]
OfRegrades = Annotated[bool, typer.Option("--regrade", help="Ask for the worker that re-grades.")]
OfDevice = Annotated[
    str | None, typer.Option(help="Ask for the runner of this device, where several share a state folder.")
]


@app.command("alive")
def alive(max_age: MaxAge = 60.0, *, of_regrades: OfRegrades = False, device: OfDevice = None) -> None:
    """For liveness checks: exit code 0 when a worker of this state folder looked round lately, else 1."""
    age_s = _heard_of(_file(device, of_regrades=of_regrades), max_age).age_s
    console().print(f"looked round {age_s:.0f} s ago")


@app.command("ready")
def ready(max_age: MaxAge = 60.0, *, of_regrades: OfRegrades = False, device: OfDevice = None) -> None:
    """For health checks: exit code 0 when a worker looked round lately and can do its work, else 1 and why not."""
    said = _heard_of(_file(device, of_regrades=of_regrades), max_age)
    if said.problems:
        _say("not ready: " + "; ".join(said.problems))
        raise typer.Exit(1)
    console().print(f"ready, said {said.age_s:.0f} s ago")


def _file(device: str | None, *, of_regrades: bool) -> str:
    from grader_service.service import pulse  # noqa: PLC0415 - see above

    if of_regrades and device is not None:
        raise UsageError("--regrade and --device ask for different workers; give one of them")
    return pulse.REGRADE if of_regrades else pulse.ANY if device is None else pulse.of_device(device)


def _heard_of(file: str, max_age: float) -> "Pulse":
    """What the worker said, which must be fresh; else what may keep it from saying anything."""
    from grader_service.service import pulse  # noqa: PLC0415 - see above
    from grader_service.state_folder import misfit  # noqa: PLC0415

    state_dir = Settings().state_dir
    said = pulse.last(state_dir, file)
    if said is not None and said.age_s <= max_age:
        return said
    found = [] if said is None else list(said.problems)
    if (problem := misfit(state_dir)) is not None:
        found.append(f"state folder: {problem}")
    _say("; ".join(["no worker has looked round" + ("" if said is None else f" for {said.age_s:.0f} s"), *found]))
    raise typer.Exit(1)


def _say(text: str) -> None:
    console().print(text, markup=False, soft_wrap=True)
