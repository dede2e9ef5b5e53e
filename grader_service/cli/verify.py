"""`grader verify`: does the signature of a verdict, or of a note of an erasure, hold?"""

import json
from pathlib import Path
from typing import Annotated

import typer

from grader_service.errors import UsageError
from grader_service.settings import Settings
from grader_service.signing import Signer, public_key, retired_keys, signed_by


def verify(
    path: Annotated[Path, typer.Argument(help="A verdict as JSON, or the note of an erasure.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="Public key to expect, 64 hexadecimal digits; this grader's own, retired ones too, when not given."
        ),
    ] = None,
) -> None:
    """Check the signature of a verdict, or of a note of an erasure. Exit code 0 when it holds, 1 when it does not."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error
    if key is not None:
        expected = [public_key(key)]
    else:
        folder = Settings().key_dir
        expected = [Signer.from_folder(folder).public_key, *retired_keys(folder)]
    actual = signed_by(document) if isinstance(document, dict) else None
    if actual is None:
        typer.echo(f"{path}: the signature does not hold: it was changed, or was never signed")
        raise typer.Exit(1)
    if actual not in expected:
        typer.echo(f"{path}: signed by another key, {actual}; expected {' or '.join(expected)}")
        raise typer.Exit(1)
    typer.echo(f"{path}: signed by {actual}")
