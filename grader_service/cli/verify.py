"""`grader verify`: does the signature of a verdict, or of a note of an erasure, hold, and is its key believed?"""

import json
from typing import Annotated, Any

import typer

from grader_service.cli.arguments import read_input, service_store
from grader_service.errors import UsageError
from grader_service.model.keys import KeyList, public_key
from grader_service.settings import Settings
from grader_service.signer.chosen import signer_of
from grader_service.signer.signatures import doubt, signed_by


def verify(
    path: Annotated[str, typer.Argument(metavar="FILE|-", help="A verdict as JSON, or the note of an erasure.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="Expected public key, 64 hexadecimal digits; by default this grader's own, with retired ones."
        ),
    ] = None,
    keys: Annotated[
        str | None, typer.Option(metavar="FILE", help="Expected keys, as `grader keys list --json` prints them.")
    ] = None,
    *,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Accept any key for a verdict that is stored in the database unchanged."),
    ] = False,
) -> None:
    """Check the signature of a verdict, or of a note of an erasure. Exit code 0 when it is valid, else 1.

    It is invalid, too, when its key was revoked, or was not in use at the verdict's time.
    """
    document = _document(path)
    actual = signed_by(document) if isinstance(document, dict) else None
    expected = _expected(key, keys)
    if actual is None:
        typer.echo(f"{path}: invalid signature: it was changed, or was never signed")
        raise typer.Exit(1)
    reason = doubt(document, actual, expected)
    if reason is not None and stored and _held(document):
        typer.echo(f"{path}: stored in the database unchanged; but its key {actual} {reason}")
        return
    if reason is not None:
        typer.echo(f"{path}: not accepted: it is signed by {actual}, which {reason}")
        raise typer.Exit(1)
    typer.echo(f"{path}: signed by {actual}")


def _document(path: str) -> Any:
    try:
        return json.loads(read_input(path))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from error


def _expected(key: str | None, file: str | None) -> KeyList:
    if key is not None:
        return KeyList.of([public_key(key)])
    if file is None:
        return signer_of(Settings()).keys()
    return KeyList.read(read_input(file), file)


def _held(document: dict[str, Any]) -> bool:
    from grader_service.store.results import verdict_document

    text = verdict_document(service_store(), str(document.get("verdict_id")))
    return text is not None and json.loads(text) == document
