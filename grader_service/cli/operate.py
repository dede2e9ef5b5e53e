"""`grader status|queue|retry|store|metrics`: what operators ask and do.

Each command imports what it uses: `grader grade` should not wait for a database driver.
"""

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader_service.cli.arguments import operator
from grader_service.cli.output import console, when
from grader_service.cli.render import show_verdict
from grader_service.errors import UsageError
from grader_service.model.verdict import Verdict
from grader_service.settings import Settings

store_app = typer.Typer(help="The database: migrate, check.", no_args_is_help=True, rich_markup_mode=None)


def status(
    submission_id: Annotated[str, typer.Argument(help="The platform's id.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Say where a submission is, and what happened to it. Exit code 1 when it was never accepted."""
    from grader_service import wiring
    from grader_service.store import operations

    found = operations.whereabouts(wiring.ready_store(Settings()), submission_id)
    if found is None:
        console().print(f"{submission_id} was never accepted", markup=False)
        raise typer.Exit(1)
    if as_json:
        document = {
            "submission": {**found.submission},
            "runs": found.runs,
            "ahead": found.ahead,
            "events": found.events,
            "verdict": json.loads(found.verdict) if found.verdict else None,
        }
        typer.echo(json.dumps(document, indent=2, default=str))
        return
    for run in found.runs:
        waiting = f", {found.ahead} before it" if run["state"] == "run_queued" else ""
        console().print(
            f"run {run['run_id']}: {run['state']} ({run['purpose']}){waiting}, {run['attempts']} failures of ours",
            markup=False,
        )
        if run["last_error"]:
            console().print(Text(f"  {run['last_error'][:500]}", style="red"))
    for event in found.events:
        detail = f"  {json.dumps(event['detail'], default=str)[:200]}" if event["detail"] else ""
        console().print(Text(f"{when(event['at'])}  {event['kind']:<14} {event['actor']}{detail}", style="dim"))
    if found.verdict is not None:
        show_verdict(console(), Verdict.model_validate_json(found.verdict))


def queue(*, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Say what waits, for how long, and what needs attention. Exit code 1 when something does."""
    from grader_service import wiring
    from grader_service.store import operations

    state = operations.queue_state(wiring.ready_store(Settings()))
    if as_json:
        counts = [{"state": key[0], "purpose": key[1], "runs": n} for key, n in state.counts.items()]
        document = {
            "runs": counts,
            "oldest_s": dict(state.oldest_s),
            "undelivered": state.undelivered,
            "needs_attention": state.stuck,
        }
        typer.echo(json.dumps(document, indent=2, default=str))
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("state", "purpose", "runs"):
            table.add_column(heading)
        for (name, purpose), count in sorted(state.counts.items()):
            table.add_row(name, purpose, str(count))
        console().print(table)
        for purpose, age in sorted(state.oldest_s.items()):
            console().print(f"oldest waiting {purpose} run: {age:.0f} s", markup=False)
        console().print(f"answers not delivered yet: {state.undelivered}", markup=False)
        for run in state.stuck:
            console().print(
                Text(f"needs attention: run {run['run_id']} of {run['submission_id']}: {run['last_error']}", "red")
            )
    raise typer.Exit(1 if state.stuck else 0)


def retry(
    run_id: Annotated[str | None, typer.Argument(help="A run that needs attention.")] = None,
    *,
    all_runs: Annotated[bool, typer.Option("--all", help="Every run that needs attention.")] = False,
) -> None:
    """Give runs that failed through us fresh tries."""
    from grader_service import wiring
    from grader_service.store import operations

    if (run_id is None) != all_runs:
        raise UsageError("name one run, or give --all; `grader queue` lists the runs that need attention")
    count = operations.retry(wiring.ready_store(Settings()), operator(), run_id=run_id)
    if run_id is not None and not count:
        raise UsageError(f"run {run_id} does not need attention; `grader queue` lists those that do")
    console().print(f"{count} runs wait again", markup=False)


@store_app.command("migrate")
def migrate() -> None:
    """Bring the database's schema to this version; safe to repeat."""
    from grader_service import wiring

    wiring.open_store(Settings()).migrate()
    console().print("the schema is current")


@store_app.command("check")
def check() -> None:
    """Check that the database answers and has this version's schema. Exit code 2 or 3 when not."""
    from grader_service import wiring

    store = wiring.open_store(Settings())
    store.check_schema()
    console().print("the schema is current")


def metrics(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="In place of GRADER_METRICS_PORT.")] = None,
) -> None:
    """Serve the service's figures for Prometheus, read from the database at each scrape, until told to stop."""
    from grader_service import wiring
    from grader_service.service.metrics import serve_metrics

    settings = Settings()
    serve_metrics(wiring.open_store(settings), port or settings.metrics_port)
