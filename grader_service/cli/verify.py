"""`grader verify`: does a verdict's signature hold?"""

import json
from pathlib import Path
from typing import Annotated

import typer

from grader_service.errors import UsageError
from grader_service.settings import Settings
from grader_service.signing import Signer, signed_by


def verify(
    path: Annotated[Path, typer.Argument(help="A verdict as JSON.")],
    key: Annotated[
        str | None,
        typer.Option(help="Public key to expect, 64 hexadecimal digits; this grader's own when not given."),
    ] = None,
) -> None:
    """Check the signature of a verdict. Exit code 0 when it holds, 1 when it does not."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a verdict: {error}") from error
    expected = key or Signer.from_folder(Settings().key_dir).public_key
    actual = signed_by(document) if isinstance(document, dict) else None
    if actual is None:
        typer.echo(f"{path}: the signature does not hold: the verdict was changed, or was never signed")
        raise typer.Exit(1)
    if actual != expected:
        typer.echo(f"{path}: signed by another key, {actual}; expected {expected}")
        raise typer.Exit(1)
    typer.echo(f"{path}: signed by {actual}")
