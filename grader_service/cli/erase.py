"""`grader erase`: removes everything about a learner."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from grader_service import wiring
from grader_service.backup.journal import note_erasure
from grader_service.backup.place import Place
from grader_service.cli.arguments import operator
from grader_service.cli.output import tell
from grader_service.errors import InfrastructureError, UsageError
from grader_service.model.erasure import ErasureNote
from grader_service.settings import Settings
from grader_service.signer.chosen import signer_of
from grader_service.store import backups, erasing
from grader_service.store.engine import Store
from grader_service.store.erasing import Erasure

_LONGEST = 8192
"""Of a reference, in characters."""


def erase(
    *,
    learner: Annotated[str, typer.Option(metavar="ID", help="As the platform sends it.")],
    reference: Annotated[
        str, typer.Option(metavar="TEXT", help="For the note, such as the number of the request; not a name.")
    ] = "",
    note: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the note to this file.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Permanently remove all data of a learner, and print a signed note of what was removed.

    Removes submissions, runs, evidence, verdicts and answers, also those in progress. Events stay for statistics, but
    no longer identify anyone. Artifacts are removed within two days. The note has the SHA-256 of ID instead of ID.
    """
    if len(reference) > _LONGEST:
        raise UsageError(f"a reference has at most {_LONGEST} characters, got {len(reference)}; nothing was removed")
    settings = Settings()
    store = wiring.ready_store(settings)  # as the judge: operators remove nothing
    tell(f"submissions of this learner: {erasing.submissions_of(store, learner)}")
    for one in erasing.notes_about(store, learner):
        tell(f"erased before: {one['erasure_id']}, at {one['finished_at']}")
    if not yes and not (sys.stdin.isatty() and typer.confirm("Permanently remove all data of this learner?", err=True)):
        raise UsageError("nothing was removed; --yes skips the question")
    by = operator()
    place = _backups(settings, store)
    signer = signer_of(settings)
    signer.keys()  # nothing is removed while nobody signs
    text = erasing.erase(
        store, learner, by, lambda done: json.dumps(signer.sign_document(_note(done, by, reference)), indent=2)
    )
    typer.echo(text)
    if place is not None:
        _note_for_backups(place, store, json.loads(text))
    if note is not None:
        try:
            note.write_text(f"{text}\n")
        except OSError as error:
            text = f"everything was removed, but {note} cannot be written: {error}; the note is above"
            raise UsageError(text) from error


def _backups(settings: Settings, store: Store) -> Place | None:
    """Where backups lie, in which the learner still is; None where none are made."""
    if settings.backup_store is not None:
        return wiring.backup_place(settings)
    if backups.age_s(store) is not None:
        raise UsageError(
            "nothing was removed: there are backups, and GRADER_BACKUP_STORE is not set here, so that restoring one "
            "would bring the data back. Run the command where it is set, with compose in the container `judge`"
        )
    return None


def _note_for_backups(place: Place, store: Store, note: dict[str, Any]) -> None:
    """Whoever restores a backup of before has it followed again."""
    try:
        # The time after it was done, by the database's clock: a backup that saw the learner is older.
        note_erasure(place, note["learner_sha256"], backups.now(store), json.dumps(note, indent=2))
    except InfrastructureError as error:
        raise InfrastructureError(
            f"everything was removed, and the note is above, but it could not be stored with the backups: {error}. "
            "Restoring one would bring the data back: run the command again once this is fixed"
        ) from error


def _note(done: Erasure, by: str, reference: str) -> dict[str, Any]:
    note = ErasureNote(
        erasure_id=done.erasure_id,
        learner_sha256=done.learner_sha256,
        begun_at=_time(done.begun_at),
        finished_at=_time(done.finished_at),
        removed=done.removed,
        by=by,
        reference=reference,
    )
    return note.model_dump(mode="json", exclude={"signature"})


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(int(seconds), UTC)
