"""`grader labs`: the labs that can be graded, and whether a specification is right."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from checks.registry import Registry
from grader_service.cli.output import console
from grader_service.labs.catalogue import lab_ids, load_lab, load_lab_file

app = typer.Typer(help="Labs: list, show, validate.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_labs() -> None:
    """List the labs that can be graded."""
    registry = Registry()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("lab", "version", "title", "checks"):
        table.add_column(heading)
    for lab_id in lab_ids():
        lab = load_lab(lab_id, registry)
        table.add_row(
            lab.id, lab.version, lab.title, ", ".join(check.id for step in lab.steps for check in step.checks)
        )
    console().print(table)


@app.command("show")
def show_lab(lab_id: Annotated[str, typer.Argument(help="Id of the lab.")]) -> None:
    """Print a lab's whole specification as JSON."""
    typer.echo(load_lab(lab_id, Registry()).model_dump_json(indent=2))


@app.command("validate")
def validate_lab(path: Annotated[Path, typer.Argument(help="A lab specification in TOML.")]) -> None:
    """Check a lab specification: its form, its checks, and their parameters. Exit code 2 when something is wrong."""
    lab = load_lab_file(path, Registry())
    checks = sum(len(step.checks) for step in lab.steps)
    typer.echo(f"{path}: lab {lab.id} {lab.version} is valid: {len(lab.steps)} steps, {checks} checks")
