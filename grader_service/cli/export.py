"""`grader export`: verdicts in the formats of Gradescope, PrairieLearn and JUnit XML."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader_service.cli.output import tell, write_text
from grader_service.errors import InfrastructureError, UsageError
from grader_service.exports.choosing import file_names, held_back, newest
from grader_service.exports.reading import MOST_BYTES, Found, Refused, read
from grader_service.exports.registry import VERDICTS, VerdictFormatName
from grader_service.model.base import IDENTIFIER
from grader_service.model.keys import public_key
from grader_service.model.verdict import Verdict

if TYPE_CHECKING:
    from grader_service.store.engine import Store


def export(
    verdicts: Annotated[
        list[str],
        typer.Argument(
            metavar="VERDICT.json|ID...",
            help="Files with verdicts, as JSON or JSON lines; - is standard input. What is not a file is the id of a "
            "submission or of one of its runs, or a unique prefix of at least 4 characters: its verdict in force.",
        ),
    ],
    form: Annotated[VerdictFormatName, typer.Option("--format", help="What to write.")],
    out: Annotated[
        str, typer.Option(metavar="FILE|DIR|-", help="A folder, or a name that ends in /, gets one file each.")
    ] = "-",
    verify: Annotated[
        list[str] | None,
        typer.Option(metavar="PUBLIC_KEY", help="Export only what this key (64 hex digits) signed; repeatable."),
    ] = None,
    allow_rehearsal: Annotated[  # noqa: FBT002 - a flag of the command line
        bool, typer.Option("--allow-rehearsal", help="Export rehearsals too, as if they were grades.")
    ] = False,
    points: Annotated[
        float | None, typer.Option(help="Export only verdicts with this maximum score: all steps of the lab.")
    ] = None,
) -> None:
    """Write verdicts in the format of another platform. A missing score is never written as 0.

    Exit codes: 0 all exported, 1 some held back (signature, rehearsal, points), 2 some were not verdicts, or usage, 3
    the database did not answer.
    """
    keys = [public_key(key) for key in verify or []]
    folder = out != "-" and (out.endswith("/") or Path(out).is_dir())
    found: list[Found] = []
    refused: list[Refused] = []
    for item in _all(verdicts, keys):
        problem = (
            item if isinstance(item, Refused) else held_back(item, allow_rehearsal=allow_rehearsal, max_score=points)
        )
        if problem is not None:
            refused.append(problem)
        elif isinstance(item, Found):
            found.append(item)
    chosen = newest(found)
    for line in refused:
        tell(f"grader: {line.source}: {line.problem}")
    if len(found) > len(chosen):
        tell(f"grader: {len(found) - len(chosen)} older verdicts on the same submissions were left out")
    if folder:
        _write_folder(Path(out), form, chosen)
    elif len(chosen) > 1 and not VERDICTS[form].takes_several:
        raise UsageError(
            f"{form} has one document for each submission, and there are {len(chosen)}; "
            "name a folder: --out DIR/, with the final / if it does not exist yet"
        )
    elif chosen:
        write_text(out, VERDICTS[form].write(chosen))
    if refused:
        raise typer.Exit(1 if all(item.held_back for item in refused) else 2)


def _all(sources: Sequence[str], keys: Sequence[str]) -> Iterator[Found | Refused]:
    open_store = functools.cache(_store)
    for source in dict.fromkeys(sources):
        name = "standard input" if source == "-" else source
        if source != "-" and IDENTIFIER.fullmatch(source) and not Path(source).exists():
            yield from _in_force(open_store, source, keys)
            continue
        try:
            if source == "-":
                content = sys.stdin.buffer.read(MOST_BYTES + 1)
            else:
                with Path(source).open("rb") as file:
                    content = file.read(MOST_BYTES + 1)
        except OSError as error:
            yield Refused(name, f"cannot be read: {error.strerror}. Name a file with verdicts.", held_back=False)
            continue
        if len(content) > MOST_BYTES:
            problem = f"larger than {MOST_BYTES >> 20} MiB, the limit for one file. Split it."
            yield Refused(name, problem, held_back=False)
            continue
        yield from read(name, content, keys)


def _store() -> "Store":
    from grader_service import wiring  # noqa: PLC0415 - most exports need no database driver
    from grader_service.settings import Settings  # noqa: PLC0415 - nor any settings

    return wiring.existing_store(Settings())


def _in_force(open_store: Callable[[], "Store"], source: str, keys: Sequence[str]) -> Iterator[Found | Refused]:
    """The verdict in force of the submission that is named."""
    from grader_service.store import operations  # noqa: PLC0415 - as above

    try:
        found = operations.whereabouts(open_store(), source)
    except UsageError as error:
        yield Refused(source, f"there is no such file, and {error}", held_back=False)
        return
    except InfrastructureError as error:
        raise InfrastructureError(f"{source} is not a file, and could not be looked up as an id: {error}") from error
    submission_id = found.submission["submission_id"]
    if found.verdict is None:
        problem = f"submission {submission_id} has no verdict yet. `grader status {submission_id}` says where it is."
        yield Refused(source, problem, held_back=False)
    else:
        yield from read(f"submission {submission_id}", found.verdict.encode(), keys)


def _write_folder(folder: Path, form: VerdictFormatName, chosen: Sequence[Verdict]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be created: {error.strerror}") from error
    names = file_names([verdict.submission_id for verdict in chosen], VERDICTS[form].ending)
    for verdict in chosen:
        write_text(str(folder / names[verdict.submission_id]), VERDICTS[form].write([verdict]))
    tell(f"grader: {len(chosen)} {'file' if len(chosen) == 1 else 'files'} in {folder}")
