"""`grader checks new` and `grader checks test`: the author kit on the command line."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from checks.authoring.report import Conformance
from checks.authoring.scaffold import ProbeChoice, create_file, create_package
from checks.authoring.target import find_targets
from grader_service.cli.output import ProgressDisplay, say

_INDENT = 26


def new(
    name: Annotated[str, typer.Argument(help="Id of the check, such as batch_layout.")],
    probe: Annotated[
        ProbeChoice,
        typer.Option(help="Where the check's probe runs: none, on the graph, or beside the learner's code."),
    ] = ProbeChoice.NONE,
    package: Annotated[  # noqa: FBT002 - a flag of the command line
        bool,
        typer.Option("--package", help="Create an installable project, with controls, a lab and a pyproject.toml."),
    ] = False,
    into: Annotated[Path, typer.Option(metavar="DIR", help="Folder to create it in.")] = Path(),
) -> None:
    """Create a working check, and a file with its tests."""
    if package:
        folder = create_package(name, probe, into)
        made, steps = f"{folder} was made.", [f"cd {folder}", "grader checks test", "pip install -e .", "pytest"]
    else:
        check, test = create_file(name, probe, into)
        made = f"{check} and {test} were made."
        steps = [f"grader checks test {check}", f"pytest {test}", f"grader checks dev {check} SUBMISSION"]
    typer.echo(f"{made} Next:\n")
    for line in steps:
        typer.echo(f"  {line}")


def check_conformance(
    check: Annotated[str, typer.Argument(metavar="NAME|PATH", help="An installed check, a file, or a project.")] = ".",
    accept: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--accept", help="Update conformance.lock: accept results that differ from it.")
    ] = False,
    skip_controls: Annotated[  # noqa: FBT002 - see above
        bool, typer.Option("--skip-controls", help="Do not run the control submissions.")
    ] = False,
    as_json: Annotated[  # noqa: FBT002 - see above
        bool, typer.Option("--json", help="Print one JSON object per check.")
    ] = False,
) -> None:
    """Run the conformance suite on a check: loading, purity, hostile input, and its control submissions.

    Control submissions run as plain processes, so use it for checks and controls that you trust.
    Exit codes: 0 nothing failed, 1 something did, 2 there is no such check or its files are wrong.
    """
    from grader_service.authoring.conformance import conform  # noqa: PLC0415 - imports the whole flow

    reports = []
    for target in find_targets(check):
        with ProgressDisplay(quiet=as_json) as progress:
            report = conform(target, accept=accept, controls=not skip_controls, progress=progress)
        reports.append(report)
        if as_json:
            sys.stdout.write(json.dumps({**report.model_dump(mode="json"), "passed": report.passed}) + "\n")
        else:
            _show(report)
    raise typer.Exit(0 if all(report.passed for report in reports) else 1)


def _show(report: Conformance) -> None:
    lines = [f"{report.check} {report.version} ({report.source})"]
    for one in report.properties:
        lines.append(f"  {one.status:8} {one.name:14} {one.text}")
        if one.todo:
            lines.append(f"{'':{_INDENT}}To do: {one.todo}")
        if one.traceback:
            lines.append(textwrap.indent(one.traceback, " " * _INDENT))
    count = sum(one.status == "failed" for one in report.properties)
    lines.append(f"{count} of {len(report.properties)} properties failed." if count else "Nothing failed.")
    say("\n".join(lines))
