"""`grader labs`: the labs that can be graded, and whether a specification is right."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from checks.registry import Registry
from checks.wanted_names import wanted_names
from grader_service.cli import lab_authoring
from grader_service.cli.loading import group
from grader_service.cli.output import console, table_of
from grader_service.errors import ConfigurationError, UsageError
from grader_service.labs.catalogue import inspect_file, load_lab, named_text, parse_lab
from grader_service.labs.discovery import installed
from grader_service.labs.documents import Form
from grader_service.labs.toml_text import lab_as_toml
from grader_service.model.base import neutralise
from grader_service.model.lab import LabSpec

app = group("Labs: list, show, make, validate, try.")
app.command("new")(lab_authoring.new)
app.command("try")(lab_authoring.try_lab)


@app.command("list")
def list_labs() -> None:
    """List the installed labs and the distributions that they came with. Exit code 2 when one of them is broken."""
    registry, labs = Registry(), installed()
    table = table_of("lab", "version", "title", "checks", "from", overflow="ellipsis")
    broken = []
    for lab_id in labs.ids():
        origin = Text(labs.origin(lab_id))
        try:
            lab = load_lab(lab_id, registry)
        except ConfigurationError as error:
            broken.append(str(error))
            table.add_row(Text(neutralise(lab_id)), "–", "does not load", "–", origin)
            continue
        checks = ", ".join(check.id for step in lab.steps for check in step.checks)
        table.add_row(lab.id, lab.version, Text(lab.title), checks, origin)
    console().print(table)
    if broken:
        raise ConfigurationError("\n".join(broken))


@app.command("show")
def show_lab(
    lab_id: Annotated[str, typer.Argument(metavar="ID|FILE", help="Id of the lab, or its file.")],
    *,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print the specification as TOML.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole specification, with defaults.")] = False,
) -> None:
    """Show a lab: what it is about, the names that a submission must define, and its steps with their checks."""
    if as_toml and as_json:
        raise UsageError("--toml and --json exclude each other")
    registry = Registry()
    text = named_text(lab_id)
    lab = parse_lab(text, f"lab {lab_id}", registry)
    if as_json:
        typer.echo(lab.model_dump_json(indent=2))
    elif as_toml:
        typer.echo(text.content.decode() if text.form is Form.TOML else lab_as_toml(lab), nl=False)
    else:
        _show(lab, text.origin, registry)


@app.command("validate")
def validate_labs(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Specifications in TOML or YAML.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per mistake and line, nothing else.")
    ] = False,
) -> None:
    """Check lab specifications: form, checks, parameters. Every mistake is printed with its line and column.

    Exit code 0 when all are valid, warnings or not; 2 when one is not.
    """
    registry = Registry()
    valid = True
    for path in paths:
        inspection = inspect_file(path, registry)
        for mistake in inspection.mistakes:
            typer.echo(mistake.json_line(str(path)) if as_json else mistake.text(str(path)))
        valid = valid and inspection.lab is not None
        if inspection.lab is not None and not as_json:
            lab, checks = inspection.lab, sum(len(step.checks) for step in inspection.lab.steps)
            size = f"{len(lab.steps)} steps, {checks} checks"
            typer.echo(neutralise(f"{path}: lab {lab.id} {lab.version} is valid: {size}"))
    raise typer.Exit(0 if valid else 2)


def _show(lab: LabSpec, origin: str, registry: Registry) -> None:
    needs = f", needs grader {lab.grader}" if lab.grader else ""
    console().print(Text(lab.title, style="bold"))
    console().print(Text(f"{lab.id} {lab.version}, from {origin}, image {lab.image}{needs}"))
    for text in (lab.summary, lab.handout):
        if text:
            console().print(Text(f"\n{text.strip()}"))
    rows = (
        (wanted.name, wanted.holds, ", ".join(wanted.steps) + (" (optional)" if wanted.optional else ""))
        for wanted in wanted_names(lab.steps, registry)
    )
    names = table_of("name", "holds", "step", rows=rows)
    if names.row_count:
        console().print(Text("\nNames that a submission must define:\n"))
        console().print(names)
    table = table_of("step", "check", "points", "learners read", "parameters", overflow="ellipsis")
    for step in lab.steps:
        for check in step.checks:
            params = ", ".join(f"{name} = {value}" for name, value in check.params.items())
            points = f"{check.points:g}, optional" if check.optional else f"{check.points:g}"
            table.add_row(step.id, check.id, points, check.feedback, Text(neutralise(params)))
    console().print()
    console().print(table)
