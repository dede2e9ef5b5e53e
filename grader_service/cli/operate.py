"""`grader status|queue|retry|cancel|store|metrics`: what operators ask and do."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

from grader_service import wiring
from grader_service.cli.arguments import ANY_ID, operator, service_store
from grader_service.cli.loading import group
from grader_service.cli.output import console, say, table_of, when
from grader_service.cli.preflight_text import show_answer
from grader_service.errors import UsageError
from grader_service.logs import configure_logs
from grader_service.model.verdict import Verdict
from grader_service.service.metrics import serve_metrics
from grader_service.settings import Settings
from grader_service.store import cancelling, ids, operations
from grader_service.store.ids import Named
from grader_service.store.operations import Place, QueueState, places

_MOST_TOLD = 5
store_app = group("The database: migrate, check.")


def status(
    submission: Annotated[str, typer.Argument(metavar="ID", help=ANY_ID)],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Show the state of a submission and what happened to it. Exit code 1 when it was never accepted."""
    try:
        found = operations.whereabouts(service_store(), submission)
    except ids.UnknownId as error:
        say(f"never accepted: {error}")
        raise typer.Exit(1) from None
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
    say(f"submission {found.submission['submission_id']}")
    for run in found.runs:
        _show_run(run, found.ahead if run["state"] == "run_queued" else None)
    for event in found.events:
        detail = f"  {json.dumps(event['detail'], default=str)[:200]}" if event["detail"] else ""
        console().print(Text(f"{when(event['at'])}  {event['kind']:<14} {event['actor']}{detail}", style="dim"))
    if found.verdict is not None:
        show_answer(console(), Verdict.model_validate_json(found.verdict), for_staff=True)


def _show_run(run: Mapping[str, Any], ahead: int | None) -> None:
    waiting = "" if ahead is None else f", {ahead} ahead of it"
    say(f"run {run['run_id']}: {run['state']} ({run['purpose']}){waiting}, {run['attempts']} infrastructure failures")
    if run["last_error"]:
        console().print(Text(f"  {run['last_error'][:500]}", style="red"))


def queue(
    submission: Annotated[str | None, typer.Argument(metavar="ID", help=f"{ANY_ID} Without it: all runs.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what waits, for how long, and which runs need attention. Exit code 1 when one does.

    With ID: only this submission, with the state of each of its runs and the number of runs ahead of it.
    """
    store = service_store()
    submission_id = None if submission is None else ids.submission_named(store, submission)
    state = operations.queue_state(store, submission_id)
    runs = [] if submission_id is None else [asdict(place) for place in places(store, submission_id)]
    if as_json:
        counts = [{"state": key[0], "purpose": key[1], "runs": n} for key, n in state.counts.items()]
        document: dict[str, Any] = {
            "runs": counts,
            "oldest_s": dict(state.oldest_s),
            "undelivered": state.undelivered,
            "needs_attention": state.stuck,
        }
        if submission_id is not None:
            document |= {"submission_id": submission_id, "places": runs}
        typer.echo(json.dumps(document, indent=2, default=str))
    elif submission_id is not None:
        say(f"submission {submission_id}")
        for run in runs:
            _show_run(run, run["ahead"])
        say(f"answers not delivered yet: {state.undelivered}")
    else:
        _show_queue(state)
    raise typer.Exit(1 if state.stuck else 0)


def _show_queue(state: QueueState) -> None:
    rows = ((name, purpose, str(count)) for (name, purpose), count in sorted(state.counts.items()))
    console().print(table_of("state", "purpose", "runs", rows=rows, overflow="ellipsis"))
    for purpose, age in sorted(state.oldest_s.items()):
        say(f"oldest waiting {purpose} run: {age:.0f} s")
    say(f"answers not delivered yet: {state.undelivered}")
    for run in state.stuck:
        say(f"needs attention: run {run['run_id']} of {run['submission_id']}: {run['last_error']}", "red")


def retry(
    named: Annotated[
        str | None,
        typer.Argument(metavar="ID", help=f"{ANY_ID} A submission's id means all its runs that need attention."),
    ] = None,
    *,
    all_runs: Annotated[bool, typer.Option("--all", help="Every run that needs attention.")] = False,
) -> None:
    """Retry runs that used up their attempts through failures of the grader."""
    if (named is None) != all_runs:
        raise UsageError("name one run or submission, or give --all; `grader queue` lists the runs that need attention")
    store = service_store()
    chosen = None if named is None else ids.named(store, named)
    count = operations.retry(store, operator(), chosen)
    if chosen is not None and not count:
        raise UsageError(_why_not(chosen, places(store, chosen.submission_id)))
    console().print(f"{count} runs are queued again", markup=False)


def _why_not(chosen: Named, runs: Sequence[Place]) -> str:
    """Why nothing of what was named is tried again: where each run is."""
    meant = _meant(chosen, runs)
    dead_lettered = [run for run in meant if run.state == "needs_attention"]
    if dead_lettered:
        batch = dead_lettered[0].batch_id
        return (
            f"run {dead_lettered[0].run_id} needs attention in batch {batch}, which is {dead_lettered[0].batch_state}; "
            f"`grader regrade retry {batch}` tries it again"
        )
    return f"{chosen} does not need attention: {_states(meant)}; `grader queue` lists the runs that do"


def cancel(
    named: Annotated[
        str, typer.Argument(metavar="ID", help=f"{ANY_ID} A submission's id means all its runs that are not done.")
    ],
    *,
    reason: Annotated[str, typer.Option("-m", "--reason", metavar="TEXT", help="Reason, shown to the learner.")] = "",
) -> None:
    """Cancel runs that wait or execute. The platform gets a `rejected` verdict, and no attempt is counted.

    A runner that executes one stops within a third of GRADER_LEASE_S. A run of a re-grade ends without a verdict.
    """
    store = service_store()
    chosen = ids.named(store, named)
    count = cancelling.cancel(store, chosen, reason, operator())
    if not count:
        runs = _states(_meant(chosen, places(store, chosen.submission_id)))
        raise UsageError(f"{chosen} has nothing left to cancel: {runs}")
    console().print("1 run is cancelled" if count == 1 else f"{count} runs are cancelled", markup=False)


def _meant(chosen: Named, runs: Sequence[Place]) -> list[Place]:
    return [run for run in runs if chosen.run_id in {None, run.run_id}]


def _states(runs: Sequence[Place]) -> str:
    return ", ".join(f"run {run.run_id} is {run.state}" for run in runs[-_MOST_TOLD:])


@store_app.command("migrate")
def migrate() -> None:
    """Migrate the database's schema to this version. Safe to repeat, and while workers run.

    With PostgreSQL it also grants the roles of the services their rights, and creates those whose passwords are in
    GRADER_DATABASE_ROLES_DIR.
    """
    configure_logs("migrate")
    settings = Settings()
    roles = wiring.migrate(settings)
    console().print("the schema matches this version")
    if roles:
        say(f"rights were granted to the roles {', '.join(roles)}")
    elif settings.database_roles_dir is not None:
        say("no role was changed: SQLite has none, and the roles of a newer schema are left to its own version")


@store_app.command("check")
def check() -> None:
    """Check that the database answers, with a schema that matches this version. Exit code 2 or 3 when not."""
    store = wiring.open_store(Settings())
    store.check_schema()
    console().print("the schema matches this version")


def metrics(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="In place of GRADER_METRICS_PORT.")] = None,
) -> None:
    """Serve metrics for Prometheus, read from the database at each scrape, until stopped."""
    settings = Settings()
    serve_metrics(wiring.open_store(settings), port or settings.metrics_port)
