"""`grader checks`: what is installed, judging given observations without a run, and the author kit's commands."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from checks.raising import raised
from checks.registry import LoadedCheck, Registry
from grader_service.cli import authoring, dev
from grader_service.cli.loading import group
from grader_service.cli.output import console, table_of
from grader_service.errors import ConfigurationError, JudgeFailed, UsageError
from grader_service.judging import rubric
from grader_service.judging.checks import Judged
from grader_service.labs.catalogue import named_lab
from grader_service.model.lab import LabCheck, LabSpec, LabStep
from grader_service.model.near import instead

app = group("Checks: list them, make and test one, try one on given observations.")
app.command("new")(authoring.new)
app.command("test")(authoring.check_conformance)
app.command("dev")(dev.dev)
_MAX_LINE = 4 << 20


@app.command("list")
def list_checks() -> None:
    """List the installed checks and the distributions that they came with."""
    registry = Registry()
    table = table_of("check", "version", "title", "from", overflow="ellipsis")
    broken = []
    for check_id in registry.ids():
        try:
            loaded = registry.load(check_id)
            table.add_row(check_id, loaded.check.version, loaded.check.title, registry.origin(check_id))
        except ConfigurationError as error:
            broken.append(str(error))
            table.add_row(check_id, "–", "does not load", registry.origin(check_id))
    console().print(table)
    if broken:
        raise ConfigurationError("\n".join(broken))


@app.command("run")
def run_check(
    check_id: Annotated[str, typer.Argument(help="Id of the check.")],
    observations: Annotated[str, typer.Option(metavar="FILE.jsonl|-", help="One JSON object per line.")],
    lab: Annotated[str, typer.Option(metavar="ID|FILE", help="Lab whose parameters are used.")] = "dali-pipelines",
) -> None:
    """Judge observations without a run: reads one JSON object per line, and writes one result per line.

    An invalid observation gives a line with outcome `error` and code `observation.invalid`.
    """
    registry = Registry()
    step, check = _find(named_lab(lab, registry), check_id)
    loaded = registry.load(check_id)
    params = loaded.parse_params(check.params)
    for number, line in enumerate(_lines(observations), 1):
        try:
            observation = loaded.check.observation_model.model_validate_json(line)
            result = loaded.check.decide(observation, params)
        except ValidationError as error:
            sys.stdout.write(json.dumps(_invalid(loaded, check, step, error)) + "\n")
            continue
        except Exception as error:
            told = raised(error)
            raise JudgeFailed(
                check_id, loaded.distribution, f"at observation {number}: {told.text}", told.traceback
            ) from error
        verdict = rubric.check_verdict(Judged(step, check, loaded.check.version, loaded.version_text, result))
        sys.stdout.write(verdict.model_dump_json() + "\n")
        sys.stdout.flush()


def _find(lab: LabSpec, check_id: str) -> tuple[LabStep, LabCheck]:
    checks = {check.id: (step, check) for step in lab.steps for check in step.checks}
    if check_id in checks:
        return checks[check_id]
    meant = instead(check_id, checks, "its checks")
    for step in lab.steps:
        if step.id == check_id:
            meant = f"; {check_id} is a step, whose checks are: {', '.join(check.id for check in step.checks)}"
    raise UsageError(f"lab {lab.id} has no check {check_id!r}{meant}")


def _lines(source: str) -> Iterator[str]:
    try:
        stream = sys.stdin if source == "-" else Path(source).open(encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error}") from error
    with stream:
        while line := stream.readline(_MAX_LINE):
            if line.strip():
                yield line


def _invalid(loaded: LoadedCheck, check: LabCheck, step: LabStep, error: ValidationError) -> dict[str, object]:
    problems = [f"{'.'.join(map(str, p['loc'])) or '(top)'}: {p['msg']}" for p in error.errors(include_url=False)[:5]]
    return {
        "id": check.id,
        "version": loaded.check.version,
        "step": step.id,
        "outcome": "error",
        "code": "observation.invalid",
        "score": None,
        "max_score": check.points,
        "feedback": f"This is not an observation of {check.id}: {'; '.join(problems)}"[:2000],
        "details": {},
        "tier": None,
    }
