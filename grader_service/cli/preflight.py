"""`grader preflight`: what a submission has and lacks, in seconds and without a grade."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from checks.registry import Registry
from grader_service.cli.grade import LabOption, SandboxOption, opened
from grader_service.cli.output import ProgressDisplay, check_targets, console, write_text
from grader_service.cli.packing import PATH_HELP, one_file
from grader_service.cli.preflight_text import EXIT_CODES, show_preflight
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import named_lab
from grader_service.settings import Settings


def preflight(
    path: Annotated[Path, typer.Argument(help=PATH_HELP)],
    lab: LabOption = "dali-pipelines",
    sandbox: SandboxOption = "docker",
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE|-", help="Write the preflight as JSON; - is standard output."),
    ] = None,
) -> None:
    """Check one submission before it is graded: names, data, DALI graph, first batch, and the form of its lists.

    Runs it once, top to bottom, on the CPU; nothing is measured, graded or kept.

    Exit codes: 0 nothing is missing, 1 something is, 2 usage, 3 our fault, 4 only a GPU could tell, 5 rejected.
    """
    from grader_service.service.local import preflight as look

    check_targets({"--json": json_file}, path)
    settings, registry = Settings(), Registry()
    spec = named_lab(lab, registry)
    runner = opened(sandbox, spec.image, settings)
    with ExitStack() as afterwards:
        with one_file(path) as file, ProgressDisplay.beside(json_file) as progress:
            found = look(artifact_at(file), spec, registry, runner, progress, afterwards)
        if json_file != "-":
            show_preflight(console(), found)
        if json_file is not None:
            write_text(json_file, found.model_dump_json(indent=2) + "\n")
    raise typer.Exit(EXIT_CODES[found.ready])
