"""`grader doctor`: what this host can do, and why not."""

import json
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader_service.cli.output import console
from grader_service.diagnosis import Finding, Level, examine
from grader_service.settings import Settings

_STYLES = {Level.OK: "green", Level.LIMITED: "yellow", Level.MISSING: "red"}


def doctor(
    *, as_json: Annotated[bool, typer.Option("--json", help="One JSON object per finding and line.")] = False
) -> None:
    """Say what this host can do, and why not. Exit code 0 when submissions can be graded in Docker, else 3."""
    findings = examine(Settings())
    if as_json:
        for finding in findings:
            typer.echo(json.dumps(finding.__dict__ | {"level": finding.level.value}))
    else:
        _show(findings)
    missing = [finding for finding in findings if finding.level is Level.MISSING and finding.required]
    raise typer.Exit(3 if missing else 0)


def _show(findings: list[Finding]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        table.add_row(
            Text(finding.level.value, style=_STYLES[finding.level]),
            finding.topic,
            Text(finding.found),
            Text(finding.advice),
        )
    console().print(table)
