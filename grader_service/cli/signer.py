"""`grader signer`: the process that alone reads the signing key."""

from pathlib import Path
from typing import Annotated

import typer

from grader_service.logs import configure_logs
from grader_service.settings import Settings
from grader_service.signer.chosen import folder_signer, own_keys_only
from grader_service.signer.serving import serve


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
