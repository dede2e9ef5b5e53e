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
    keep: Annotated[int, typer.Option(min=1, help="Number of newest backups to keep; older ones are removed.")] = 7,
    without_artifacts: Annotated[
        bool,
        typer.Option("--without-artifacts", help="Leave out the artifacts, where their store has backups of its own."),
    ] = False,
    with_private_key: Annotated[
        bool,
        typer.Option(
            "--with-private-key",
            help="Include the signing key: whoever reads it can forge verdicts. Only where GRADER_SIGNER is not set.",
        ),
    ] = False,
    every_hours: Annotated[
        float | None, typer.Option(min=0.1, help="Keep running, and make a backup when the newest is older.")
    ] = None,
) -> None:
    """Back up the database and the artifacts to GRADER_BACKUP_STORE while the service keeps running.

    The journal of answers there is cut to what the oldest remaining backup needs.
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
        tell(f"{len(made.missing_artifacts)} artifacts are missing in it: the artifact store could not read them")


@app.command("list")
def list_backups() -> None:
    """List the complete backups, oldest first."""
    table = table_of("name", "begun", "schema", "rows", "MB", "artifacts", "signing key")
    for one in _place().manifests():
        size = f"{one.size_bytes / 1e6:.1f}"
        artifacts = one.files.get(LISTED)
        key = "included" if PRIVATE_KEY in one.files else "not included"
        listed = "not included" if artifacts is None else str(artifacts.lines)
        table.add_row(one.name, when(one.begun_at), one.database_schema, str(one.rows), size, listed, key)
    console().print(table if table.row_count else "none")


@app.command("check")
def check(name: Name = "newest") -> None:
    """Check a backup and its artifacts against its manifest. Exit code 1 if one is missing or damaged."""
    place = _place()
    manifest = place.manifest(name)
    with ProgressDisplay() as progress:
        damaged = verifying.damaged(place, manifest, progress.stage)
    for one in damaged[:_SHOWN]:
        tell(f"damaged: {one}")
    if damaged:
        tell(f"{manifest.name}: {len(damaged)} files are missing or damaged")
        raise typer.Exit(1)
    tell(f"{manifest.name}: all {len(manifest.files)} files and the artifacts are intact")


@app.command("restore")
def restore(
    name: Name = "newest",
    *,
    replace: Annotated[bool, typer.Option("--replace", help="First delete everything in the database.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Restore a backup, and the verdicts that platforms got after it was made. Start the workers afterwards.

    The later verdicts come from the journal of answers, and are sent again. Learners who were erased later are erased
    again. Exit code 1 when a signature is invalid or an artifact is lost.
    """
    settings = Settings()
    place = wiring.backup_place(settings)
    manifest = place.manifest(name)
    if replace and not yes and not typer.confirm("Permanently delete everything in the database?", err=True):
        raise UsageError("nothing was restored; --yes skips the question")
    store = wiring.open_store(settings)
    keys = settings.key_dir if settings.signer is None else signer_of(settings)
    where = restoring.Where(store, keys, wiring.open_artifacts(settings), operator())
    with ProgressDisplay() as progress:
        done = restoring.restore(place, manifest, where, replace=replace, progress=progress.stage)
    wiring.migrate(settings)  # tables that were made anew know nothing of the services' roles
    raise typer.Exit(_told(manifest, done))


@app.command("keys")
def keys(name: Name = "newest") -> None:
    """Print the public keys of a backup and of the journal after it, as JSON for `grader keys add -`."""
    place = _place()
    typer.echo(restoring.saved_keys(place, place.manifest(name)).model_dump_json(indent=2))


def _told(manifest: Manifest, done: restoring.Restored) -> int:
    """Says what was restored; the exit code."""
    adopted, checked = done.adopted, done.checked
    tell(f"{manifest.name}: {done.rows} rows, {done.artifacts} artifacts")
    until = f" (last entry {when(adopted.last_at)})" if adopted.last_at is not None else ""
    tell(
        f"from the journal since {when(manifest.begun_at)}{until}: {adopted.verdicts} verdicts restored, "
        f"{adopted.answers} answers to send again, {adopted.erased} learners erased again"
    )
    tell(f"{sum(checked.by_key.values())} signatures are valid, {len(checked.bad)} are not")
    for key, number in checked.by_key.items():
        tell(f"  {key}: {number}")
    for verdict_id in checked.bad[:_SHOWN]:
        tell(f"  invalid signature: verdict {verdict_id}")
    for digest in done.lost_artifacts[:_SHOWN]:
        tell(f"lost: artifact {digest}")
    if done.unknown_keys:
        tell(
            f"the signer does not know these earlier public keys: {', '.join(done.unknown_keys)}. Verdicts that they "
            "signed are rejected until `grader keys add -`, run at the signer, gets the output of `grader backup keys`"
        )
    if done.private_key:
        tell("the signing key of the backup is in use again")
    tell(
        "submissions that were accepted after the backup and not answered are lost: platforms have to post them "
        "again. `grader reconcile FILE` lists the ids that are unknown here"
    )
    return 1 if checked.bad or done.lost_artifacts else 0


def _place() -> Place:
    return wiring.backup_place(Settings())
