"""`grader labs new` and `grader labs try`: a lab of one's own, and what example submissions get in it."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from checks.registry import Registry
from grader_service.authoring.lab_scaffold import create_lab
from grader_service.cli.arguments import fresh_id
from grader_service.cli.grade import DeviceOption, SandboxOption, opened, taken_device
from grader_service.cli.output import ProgressDisplay, console, error_console, table_of
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import load_lab_file
from grader_service.model.submission import Submission
from grader_service.model.verdict import Outcome
from grader_service.settings import Settings

if TYPE_CHECKING:
    from grader_service.authoring.lab_trial import Row
    from grader_service.service.local import Graded

_MARKS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗"}


def new(
    name: Annotated[str, typer.Argument(help="Id of the lab, such as image-decoding.")],
    into: Annotated[Path, typer.Option(metavar="DIR", help="Folder to create it in.")] = Path(),
) -> None:
    """Create a working lab: its file, and a folder with a submission that passes and one that fails."""
    lab, folder = create_lab(name, into)
    typer.echo(f"{lab} and {folder} were made. Next:\n")
    for line in (f"grader labs validate {lab}", f"grader labs try {lab} --on {folder}", f"grader labs show {lab}"):
        typer.echo(f"  {line}")


def try_lab(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The lab's file, in TOML or YAML.")],
    on: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Submissions: those in passing/ should pass, those in failing/ should fail."
        ),
    ],
    device: DeviceOption = "auto",
    sandbox: SandboxOption = "process",
    as_json: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--json", help="Print one JSON object per submission and line, nothing else.")
    ] = False,
) -> None:
    """Grade example submissions by a lab, and show which steps each passes.

    Exit codes: 0 all came out as expected, or nothing was expected, 1 one did not, 2 usage, 3 our fault.
    """
    from grader_service.authoring.lab_trial import submissions_in, tried
    from grader_service.judging.process import JudgeProcess
    from grader_service.service.local import GradeDeps
    from grader_service.service.local import grade as grade_submission
    from grader_service.signer.chosen import signer_of

    registry, settings = Registry(), Settings()
    spec = load_lab_file(file, registry)
    submissions = submissions_in(on)
    rows = []
    with ExitStack() as stack:
        chosen, gpu = taken_device(stack, device, settings)
        runner = opened(sandbox, spec.image, settings, gpu)
        judging = stack.enter_context(JudgeProcess())
        deps = GradeDeps(spec, registry, runner, chosen, signer_of(settings), gpu, judging=judging)

        def grade(path: Path) -> "Graded":
            artifact = artifact_at(path)
            submission = Submission(
                submission_id=fresh_id("try", path),
                lab=spec.id,
                filename=path.name[:200],
                sha256=artifact.sha256,
                size_bytes=artifact.size_bytes,
            )
            with ProgressDisplay(quiet=not error_console().is_terminal) as progress:
                return grade_submission(submission, artifact, deps, progress)

        for number, row in enumerate(tried(spec, on, submissions, grade), 1):
            rows.append(row)
            if as_json:
                sys.stdout.write(row.model_dump_json() + "\n")
                sys.stdout.flush()
            else:
                error_console().print(
                    f"{number} of {len(submissions)}: {row.submission} {row.status.value}", markup=False, style="dim"
                )
    if not as_json:
        _show(rows)
    raise typer.Exit(1 if any(row.right is False for row in rows) else 0)


def _show(rows: "list[Row]") -> None:
    steps = list(dict.fromkeys(cell.step for row in rows for cell in row.cells))
    cells = []
    for row in rows:
        found = {cell.step: f"{_MARKS.get(cell.outcome, '?')} {cell.code}".strip() for cell in row.cells}
        verdict = row.status.value if row.cells else f"{row.status.value} {row.code}"
        expected = {None: "–", True: "yes", False: f"NO: should be {row.expected}"}[row.right]
        cells.append((row.submission, *(found.get(step, "") for step in steps), verdict, expected))
    console().print(table_of("submission", *steps, "verdict", "as expected", rows=cells))
    wrong = sum(row.right is False for row in rows)
    told = sum(row.right is not None for row in rows)
    if told:
        console().print(f"{told - wrong} of {told} came out as expected.", markup=False)
    else:
        console().print("Nothing was expected: put submissions into passing/ and failing/.", markup=False)
