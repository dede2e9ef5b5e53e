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
    typer.Option("--key", metavar="FILE|-", help="Sign with this private key, in PEM form, in place of a new one."),
]


@app.command("list")
def list_keys(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As it is published for platforms.")] = False,
) -> None:
    """List the public keys, the one in use first, with the times in which they signed, and those that are revoked."""
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
        bool, typer.Option("--hex", help="Only the keys, in one line, without revoked ones: GRADER_PUBLIC_KEYS.")
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
    """Make the first key of a new service. Where there is one, nothing is done, and the exit code is 2."""
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
    reason: Annotated[str, typer.Option(metavar="TEXT", help="For everybody who reads the list.")],
    since: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"],
            help="Believe what is dated before, such as 2026-11-28T10:00:00Z. Who has the key can date so: without it, "
            "nothing of it is believed.",
        ),
    ] = None,
) -> None:
    """Say that a key was stolen: nothing that it signed is believed any more. `grader keys rotate` first."""
    if len(reason) > 200:
        raise UsageError(f"a reason has at most 200 characters, got {len(reason)}")
    gone = key_folder.revoke(_own_folder(), key.lower(), reason, None if since is None else since.astimezone())
    typer.echo(f"{key_id(gone.public_key)} {gone.public_key} {_state(gone, 1)}; give platforms the list anew")


@app.command("add")
def add(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="As `list --json` or `grader backup keys` prints it.")],
) -> None:
    """Know public keys of before as this service's own, such as those of a backup; print those that are new."""
    for one in key_folder.add(_own_folder(), KeyList.read(read_input(file), file)):
        typer.echo(f"{key_id(one)} {one}")


def signer(
    socket: Annotated[Path, typer.Option(metavar="PATH", help="Listen there; others name it as GRADER_SIGNER.")],
) -> None:
    """Sign verdicts and notes of erasures for who may open the socket, until told to stop.

    The key is in GRADER_STATE_DIR/keys, as a user of its own whose files judges cannot read. With GRADER_PRODUCTION
    there must be one: `grader keys make`.
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
