"""`grader doctor`: what this host, or the whole service, can do, and why not."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader_service.cli.arguments import service_store
from grader_service.cli.output import console, say, table_of
from grader_service.host.doctor import Level, examine
from grader_service.settings import Settings
from grader_service.store import backups, workers
from grader_service.store.workers import Worker

_NEARLY_FULL = 0.9
_STYLES = {Level.OK: "green", Level.LIMITED: "yellow", Level.MISSING: "red"}


def doctor(
    *,
    service: Annotated[
        bool,
        typer.Option("--service", help="Check the running service instead, by what its workers have reported."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding and line.")] = False,
) -> None:
    """Check what this host can run, and say what is missing. Exit code 0 if Docker can grade submissions, else 3.

    With --service, check each worker of the service: exit code 1 when one is not ready or silent, when one of its
    chores has failed for a minute, or when there is no runner or no judge. Also shows the memory use of each Redis, as
    a judge saw it last, disks that are nearly full, and the age of the newest backup.
    """
    if service:
        raise typer.Exit(_service(as_json=as_json))
    findings = examine(Settings())
    if as_json:
        for finding in findings:
            typer.echo(json.dumps(finding.__dict__ | {"level": finding.level.value}))
    else:
        rows = ((Text(one.level.value, _STYLES[one.level]), one.topic, one.found, one.advice) for one in findings)
        console().print(table_of("", "what", "found", "what to do", rows=rows))
    missing = [finding for finding in findings if finding.level is Level.MISSING and finding.required]
    raise typer.Exit(3 if missing else 0)


def _service(*, as_json: bool) -> int:
    """Shows the workers; the exit code."""
    store = service_store()
    found = workers.workers(store)
    absent = [role for role in (workers.RUN, workers.JUDGE) if role not in {worker.role for worker in found}]
    if as_json:
        for worker in found:
            typer.echo(json.dumps(worker.__dict__ | {"state": worker.state}))
        for role in absent:
            typer.echo(json.dumps({"role": role, "state": "absent", "reason": _start(role)}))
    else:
        _show_workers(found, absent)
        heard = workers.heard(found)
        _show_chores(heard)
        _show_memory(workers.newest_memory(found))
        _show_disks(heard)
        age_s = backups.age_s(store)
        said = "none; make one with `grader backup make`" if age_s is None else f"{age_s / 3600:.1f} h ago"
        say(f"\nnewest backup: {said}")
    broken = [
        worker
        for worker in found
        if worker.state != "ready" or any(chore["for_s"] >= workers.FAILING_S for chore in worker.chores.values())
    ]
    return 1 if absent or broken else 0


def _show_workers(found: Sequence[Worker], absent: Sequence[str]) -> None:
    rows = []
    for worker in found:
        state = Text(worker.state.replace("_", " "), "green" if worker.state == "ready" else "red")
        rows.append((worker.worker_id, worker.host, state, f"{worker.seen_s:.0f} s ago", worker.reason or ""))
    rows += [(role, "", Text("absent", "red"), "", _start(role)) for role in absent]
    console().print(table_of("worker", "host", "state", "last seen", "why", rows=rows))


def _show_chores(heard: Sequence[Worker]) -> None:
    rows = (
        (worker.worker_id, Text(name, "red"), f"{chore['for_s']:.0f} s", chore["error"])
        for worker in heard
        for name, chore in worker.chores.items()
    )
    _show_below(table_of("worker", "failing chore", "for", "why", rows=rows))


def _show_memory(used: Mapping[str, float]) -> None:
    rows = (
        (name, Text(f"{ratio:.0%}", "red" if ratio >= _NEARLY_FULL else "green"))
        for name, ratio in sorted(used.items())
    )
    _show_below(table_of("Redis", "memory used", rows=rows, overflow="ellipsis"))


def _show_disks(heard: Sequence[Worker]) -> None:
    rows = (
        (worker.worker_id, name, Text(f"{ratio:.0%}", "red"))
        for worker in heard
        for name, ratio in worker.disk.items()
        if ratio >= _NEARLY_FULL
    )
    _show_below(table_of("worker", "folder", "disk used", rows=rows))


def _show_below(table: Table) -> None:
    if table.row_count:
        console().print()
        console().print(table)


def _start(role: str) -> str:
    return f"none is running: start `grader worker {role}`"
