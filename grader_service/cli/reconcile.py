"""`grader reconcile`: which submissions of a platform's list never arrived."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from grader_service.cli.arguments import read_input, service_store
from grader_service.cli.output import console, table_of, tell
from grader_service.errors import UsageError
from grader_service.store.reconciling import reconcile as ask

_SHOWN = ("unknown", "differs", "needs_attention")


def reconcile(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="One id in each line, `-` for standard input.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per id and line.")] = False,
) -> None:
    """Show which submissions of a platform's list never arrived, so that it can post them again.

    A line is an id, or an id and the SHA-256 of the submitted file. Lists the ids that are unknown, that were accepted
    with another file, or that need attention, and counts the others; with --json, prints the state of every id. Exit
    code 1 when one is unknown or differs.
    """
    asked = _read(path)
    found = ask(service_store(), asked)
    counts = Counter(one.state for one in found)
    if as_json:
        for one in found:
            typer.echo(json.dumps(one.__dict__))
    else:
        shown = [one for one in found if one.state in _SHOWN]
        rows = ((one.submission_id, one.state.replace("_", " "), one.verdict_id or "") for one in shown)
        table = table_of("submission", "state", "verdict", rows=rows)
        if shown:
            console().print(table)
    said = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in sorted(counts.items()))
    tell(f"{len(found)} submissions: {said or 'none'}")
    raise typer.Exit(1 if counts["unknown"] + counts["differs"] else 0)


def _read(path: Path) -> dict[str, str | None]:
    try:
        text = read_input(str(path)).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    asked: dict[str, str | None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) > 2 or (len(words) == 2 and not re.fullmatch("[0-9a-fA-F]{64}", words[1])):
            raise UsageError(
                f"{path}, line {number}: expected an id, or an id and a SHA-256 of 64 hexadecimal digits, got "
                f"{line[:100]!r}"
            )
        if words:
            asked[words[0]] = words[1].lower() if len(words) == 2 else None
    return asked
