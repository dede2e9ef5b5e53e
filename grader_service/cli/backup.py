"""`grader backup`: makes, lists, checks and restores backups."""

import time
from typing import Annotated

import structlog
import typer

from grader_service import wiring
from grader_service.backup import making, restoring, verifying
from grader_service.backup.place import LISTED, PRIVATE_KEY, Manifest, Place
from grader_service.cli.arguments import operator
from grader_service.cli.loading import group
from grader_service.cli.output import ProgressDisplay, console, table_of, tell, when
from grader_service.errors import InfrastructureError, UsageError
from grader_service.logs import configure_logs
from grader_service.settings import Settings
from grader_service.signer.chosen import own_keys_only, signer_of
from grader_service.signer.key_folder import pem
from grader_service.store import backups

log = structlog.get_logger(__name__)

app = group("Backups of the service: make, list, check, restore.")
_AGAIN_S = 600.0
"""After a backup that failed."""
_SHOWN = 20
Name = Annotated[str, typer.Argument(metavar="NAME", help="As listed.")]


@app.command("make")
def make(
    *,
    keep: Annotated[int, typer.Option(min=1, help="Remove all but so many of the newest backups afterwards.")] = 7,
    without_artifacts: Annotated[
        bool, typer.Option("--without-artifacts", help="Leave out what was handed in: its store is safe by itself.")
    ] = False,
    with_private_key: Annotated[
        bool,
        typer.Option(
            "--with-private-key",
            help="Take the signing key along: who reads it can forge verdicts. Only where GRADER_SIGNER is not set.",
        ),
    ] = False,
    every_hours: Annotated[
        float | None, typer.Option(min=0.1, help="Go on, and make one whenever the newest is so old.")
    ] = None,
) -> None:
    """Save all rows of the database and what was handed in to GRADER_BACKUP_STORE, while the service goes on working.

    The journal of answers there is cut to what the oldest backup that is kept needs.
    """
    settings = Settings()
    place = wiring.backup_place(settings)
    if with_private_key:
        own_keys_only(settings)
    what = making.What(
        wiring.ready_store(settings),
        signer_of(settings),
        None if without_artifacts else wiring.open_artifacts(settings),
        pem(settings.key_dir) if with_private_key else None,
    )
    if every_hours is None:
        _make(place, what, keep)
        return
    configure_logs("backup")
    while True:
        try:
            whole = place.manifests()
            due_s = whole[-1].begun_at + 3600 * every_hours - time.time() if whole else 0.0
            if due_s > 0:
                time.sleep(min(due_s, _AGAIN_S))
            else:
                _make(place, what, keep)
        except (InfrastructureError, UsageError) as error:
            log.exception("backup_failed", error=str(error)[:500])
            time.sleep(_AGAIN_S)


def _make(place: Place, what: making.What, keep: int) -> None:
    with backups.alone(what.store), ProgressDisplay() as progress:
        made = making.make(place, what, progress.stage)
        gone = making.prune(place, keep)
    tell(f"{made.name}: {made.rows} rows, {made.size_bytes / 1e6:.1f} MB, in {place.files.url}")
    if gone:
        tell(f"removed: {', '.join(gone)}")
    if made.missing_artifacts:
        tell(f"{len(made.missing_artifacts)} artifacts are not in it, which the artifact store could not give")


@app.command("list")
def list_backups() -> None:
    """List those that are whole, oldest first."""
    table = table_of("name", "begun", "schema", "rows", "MB", "artifacts", "signing key")
    for one in _place().manifests():
        size = f"{one.size_bytes / 1e6:.1f}"
        artifacts = one.files.get(LISTED)
        key = "in it" if PRIVATE_KEY in one.files else "not in it"
        listed = "not in it" if artifacts is None else str(artifacts.lines)
        table.add_row(one.name, when(one.begun_at), one.database_schema, str(one.rows), size, listed, key)
    console().print(table if table.row_count else "none")


@app.command("check")
def check(name: Name = "newest") -> None:
    """Read a backup and its artifacts, and compare them with what was written. Exit code 1 if one differs."""
    place = _place()
    manifest = place.manifest(name)
    with ProgressDisplay() as progress:
        damaged = verifying.damaged(place, manifest, progress.stage)
    for one in damaged[:_SHOWN]:
        tell(f"damaged: {one}")
    if damaged:
        tell(f"{manifest.name}: {len(damaged)} files are gone or damaged")
        raise typer.Exit(1)
    tell(f"{manifest.name}: all {len(manifest.files)} files and the artifacts are what was written")


@app.command("restore")
def restore(
    name: Name = "newest",
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Delete what the database holds first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Restore a backup, and what platforms were told since; then start the workers.

    Verdicts that were sent after the backup was made come from the journal of answers, and are sent again. Learners who
    were erased since are erased again. Exit code 1 when a signature does not hold or an artifact is lost.
    """
    settings = Settings()
    place = wiring.backup_place(settings)
    manifest = place.manifest(name)
    if replace and not yes and not typer.confirm("Delete all that the database holds, for ever?", err=True):
        raise UsageError("nothing was restored; `--yes` does not ask")
    store = wiring.open_store(settings)
    keys = settings.key_dir if settings.signer is None else signer_of(settings)
    where = restoring.Where(store, keys, wiring.open_artifacts(settings), operator())
    with ProgressDisplay() as progress:
        done = restoring.restore(place, manifest, where, replace=replace, progress=progress.stage)
    wiring.migrate(settings)  # tables that were made anew know nothing of the services' roles
    raise typer.Exit(_told(manifest, done))


@app.command("keys")
def keys(name: Name = "newest") -> None:
    """Print the public keys of a backup, and of the journal since, as JSON: for `grader keys add -`."""
    place = _place()
    typer.echo(restoring.saved_keys(place, place.manifest(name)).model_dump_json(indent=2))


def _told(manifest: Manifest, done: restoring.Restored) -> int:
    """Says what was restored; the exit code."""
    adopted, checked = done.adopted, done.checked
    tell(f"{manifest.name}: {done.rows} rows, {done.artifacts} artifacts")
    until = f", the last of {when(adopted.last_at)}" if adopted.last_at is not None else ""
    tell(
        f"since {when(manifest.begun_at)}, by the journal{until}: {adopted.verdicts} verdicts taken over, "
        f"{adopted.answers} answers to send again, {adopted.erased} learners erased again"
    )
    tell(f"{sum(checked.by_key.values())} signatures hold, {len(checked.bad)} do not")
    for key, number in checked.by_key.items():
        tell(f"  {key}: {number}")
    for verdict_id in checked.bad[:_SHOWN]:
        tell(f"  does not hold: verdict {verdict_id}")
    for digest in done.lost_artifacts[:_SHOWN]:
        tell(f"lost: artifact {digest}")
    if done.unknown_keys:
        tell(
            f"the signer does not know these public keys of before: {', '.join(done.unknown_keys)}. What they "
            "signed is refused until `grader backup keys` is given to `grader keys add -` where the signer runs"
        )
    if done.private_key:
        tell("the signing key of the backup is in use again")
    tell(
        "what was accepted since and not answered is not known here: platforms post it again. "
        "`grader reconcile FILE` says which of their ids never arrived"
    )
    return 1 if checked.bad or done.lost_artifacts else 0


def _place() -> Place:
    return wiring.backup_place(Settings())
