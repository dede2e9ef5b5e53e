"""`grader doctor`: what this host, or the whole service, can do, and why not."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader_service.cli.database import service_store
from grader_service.cli.output import console, table_of
from grader_service.host.doctor import Finding, Level, examine
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.store.workers import Worker

_NEARLY_FULL = 0.9
_STYLES = {Level.OK: "green", Level.LIMITED: "yellow", Level.MISSING: "red"}


def doctor(
    *,
    service: Annotated[
        bool,
        typer.Option("--service", help="Ask the running service in place of this host: each worker, by the store."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding and line.")] = False,
) -> None:
    """Say what this host can do, and why not. Exit code 0 when submissions can be graded in Docker, else 3.

    With --service, say of each worker of the service whether it can do its work: exit code 1 when one cannot or is
    silent, when one of its chores has failed for a minute, or when there is no runner or no judge. Below them, how much
    of its memory each Redis uses, as a judge saw it last, the disks that are nearly full (one that is full takes
    nothing), and the newest backup.
    """
    if service:
        raise typer.Exit(_service(as_json=as_json))
    findings = examine(Settings())
    if as_json:
        for finding in findings:
            typer.echo(json.dumps(finding.__dict__ | {"level": finding.level.value}))
    else:
        _show(findings)
    missing = [finding for finding in findings if finding.level is Level.MISSING and finding.required]
    raise typer.Exit(3 if missing else 0)


def _show(findings: list[Finding]) -> None:
    table = table_of("", "what", "found", "what to do")
    for finding in findings:
        table.add_row(
            Text(finding.level.value, style=_STYLES[finding.level]),
            finding.topic,
            Text(finding.found),
            Text(finding.advice),
        )
    console().print(table)


def _service(*, as_json: bool) -> int:
    """Shows the workers; the exit code."""
    from grader_service.store import backups, workers

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
        _show_backup(backups.age_s(store))
    broken = [
        worker
        for worker in found
        if worker.state != "ready" or any(chore["for_s"] >= workers.FAILING_S for chore in worker.chores.values())
    ]
    return 1 if absent or broken else 0


def _show_workers(found: "Sequence[Worker]", absent: Sequence[str]) -> None:
    table = table_of("worker", "host", "state", "spoke", "why")
    for worker in found:
        style = "green" if worker.state == "ready" else "red"
        table.add_row(
            Text(worker.worker_id),
            Text(worker.host),
            Text(worker.state.replace("_", " "), style=style),
            f"{worker.seen_s:.0f} s ago",
            Text(worker.reason or ""),
        )
    for role in absent:
        table.add_row(Text(role), "", Text("absent", style="red"), "", Text(_start(role)))
    console().print(table)


def _show_chores(heard: "Sequence[Worker]") -> None:
    table = table_of("worker", "chore that fails", "for", "why")
    for worker in heard:
        for name, chore in worker.chores.items():
            table.add_row(
                Text(worker.worker_id), Text(name, style="red"), f"{chore['for_s']:.0f} s", Text(chore["error"])
            )
    _show_below(table)


def _show_memory(used: Mapping[str, float]) -> None:
    table = table_of("Redis", "memory used", overflow="ellipsis")
    for name, ratio in sorted(used.items()):
        table.add_row(Text(name), Text(f"{ratio:.0%}", style="red" if ratio >= _NEARLY_FULL else "green"))
    _show_below(table)


def _show_disks(heard: "Sequence[Worker]") -> None:
    table = table_of("worker", "its folder", "disk used")
    for worker in heard:
        for name, ratio in worker.disk.items():
            if ratio >= _NEARLY_FULL:
                table.add_row(Text(worker.worker_id), Text(name), Text(f"{ratio:.0%}", style="red"))
    _show_below(table)


def _show_backup(age_s: float | None) -> None:
    said = "none was made: `grader backup make`" if age_s is None else f"{age_s / 3600:.1f} h ago"
    console().print(f"\nnewest backup: {said}", markup=False)


def _show_below(table: Table) -> None:
    if table.row_count:
        console().print()
        console().print(table)


def _start(role: str) -> str:
    return f"there is none: start `grader worker {role}`"
