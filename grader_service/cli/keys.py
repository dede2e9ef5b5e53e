"""`grader keys` and `grader signer`: what signs verdicts, and what signed them."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from grader_service.cli.arguments import read_input
from grader_service.cli.loading import group
from grader_service.cli.output import console, table_of
from grader_service.errors import UsageError
from grader_service.logs import configure_logs
from grader_service.model.keys import KeyList, PublicKey, key_id
from grader_service.settings import Settings
from grader_service.signer import key_folder
from grader_service.signer.chosen import folder_signer, own_keys_only, signer_of
from grader_service.signer.serving import serve

app = group("Signing keys: list, show, make, rotate, revoke, add.")
GivenKey = Annotated[
    str | None,
    typer.Option("--key", metavar="FILE|-", help="Use this private key, in PEM form, instead of a new one."),
]


@app.command("list")
def list_keys(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, in the form for platforms.")] = False,
) -> None:
    """List the public keys, the one in use first, with the time in which each was in use; also revoked keys."""
    keys = signer_of(Settings()).keys()
    if as_json:
        typer.echo(keys.model_dump_json(indent=2))
        return
    rows = (
        (key_id(one.public_key), one.public_key, _time(one.from_), _time(one.until), _state(one, number))
        for number, one in enumerate(keys.keys)
    )
    console().print(table_of("id", "public key", "from", "until", "state", rows=rows))


@app.command("show")
def show(
    *,
    bare: Annotated[
        bool, typer.Option("--hex", help="Only the keys that are not revoked, in one line, for GRADER_PUBLIC_KEYS.")
    ] = False,
) -> None:
    """Print the public keys, the one in use first: id and 64 hexadecimal digits each."""
    keys = signer_of(Settings()).keys()
    if bare:
        typer.echo(" ".join(keys.trusted))
        return
    for number, one in enumerate(keys.keys):
        typer.echo(f"{key_id(one.public_key)} {one.public_key} {_state(one, number)}")


@app.command("make")
def make(key: GivenKey = None) -> None:
    """Create the first key of a new service. Exit code 2, and no change, when there is one."""
    made = key_folder.make(_own_folder(), None if key is None else read_input(key))
    typer.echo(f"{key_id(made)} {made} in use")


@app.command("rotate")
def rotate(key: GivenKey = None) -> None:
    """Sign with a new key from now on; what the old one signed stays verifiable."""
    before, after = key_folder.rotate(_own_folder(), None if key is None else read_input(key))
    typer.echo(f"{key_id(before)} {before} retired\n{key_id(after)} {after} in use")


@app.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its id, or its 64 hexadecimal digits.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Published in the list of keys.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"],
            help="Still accept verdicts from before this time, such as 2026-11-28T10:00:00Z. Whoever has the key can "
            "backdate: without this option, no verdict signed with it is accepted.",
        ),
    ] = None,
) -> None:
    """Revoke a stolen key: nothing that it signed is accepted any more. Run `grader keys rotate` first."""
    if len(reason) > 200:
        raise UsageError(f"a reason has at most 200 characters, got {len(reason)}")
    gone = key_folder.revoke(_own_folder(), key.lower(), reason, None if since is None else since.astimezone())
    typer.echo(f"{key_id(gone.public_key)} {gone.public_key} {_state(gone, 1)}; give platforms the new list")


@app.command("add")
def add(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="As `list --json` or `grader backup keys` prints it.")],
) -> None:
    """Add earlier public keys of this service, such as those of a backup; print those that were not known."""
    for one in key_folder.add(_own_folder(), KeyList.read(read_input(file), file)):
        typer.echo(f"{key_id(one)} {one}")


def signer(
    socket: Annotated[Path, typer.Option(metavar="PATH", help="Socket to listen on; set as GRADER_SIGNER elsewhere.")],
) -> None:
    """Sign verdicts and notes of erasures for every process that may open the socket, until stopped.

    The key is in GRADER_STATE_DIR/keys; run this as a user whose files judges cannot read. With GRADER_PRODUCTION there
    must be a key: `grader keys make`.
    """
    configure_logs("signer")
    settings = Settings()
    own_keys_only(settings)
    serve(folder_signer(settings), socket)


def _own_folder() -> Path:
    settings = Settings()
    own_keys_only(settings)
    return settings.key_dir


def _state(key: PublicKey, number: int) -> str:
    if key.revoked is not None:
        since = f" since {_time(key.revoked.since)}" if key.revoked.since is not None else ""
        return f"revoked{since}: {key.revoked.reason}"
    return "retired" if number else "in use"


def _time(time: datetime | None) -> str:
    return "" if time is None else time.astimezone().isoformat(timespec="seconds")
