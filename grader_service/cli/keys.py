"""`grader keys`: what signs verdicts."""

from typing import Annotated

import typer

from grader_service.settings import Settings
from grader_service.signing import Signer, key_id, retired_keys

app = typer.Typer(help="Signing keys: show, rotate.", no_args_is_help=True, rich_markup_mode=None)


@app.command("show")
def show(
    *,
    bare: Annotated[bool, typer.Option("--hex", help="Only the keys, in one line: GRADER_PUBLIC_KEYS.")] = False,
) -> None:
    """Print the public keys, the one in use first: id and 64 hexadecimal digits each."""
    folder = Settings().key_dir
    current, *retired = [Signer.from_folder(folder).public_key, *retired_keys(folder)]
    if bare:
        typer.echo(" ".join([current, *retired]))
        return
    typer.echo(f"{key_id(current)} {current} in use")
    for key in retired:
        typer.echo(f"{key_id(key)} {key} retired")


@app.command("rotate")
def rotate() -> None:
    """Sign with a new key from the next start of judges and `worker regrade` on; old verdicts stay verifiable."""
    folder = Settings().key_dir
    before = Signer.from_folder(folder).public_key
    after = Signer.rotate(folder).public_key
    typer.echo(
        f"{key_id(before)} {before} retired\n{key_id(after)} {after} in use; restart judges and `grader worker regrade`"
    )
