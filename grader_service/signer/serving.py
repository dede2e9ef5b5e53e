"""`grader signer`: the one process that reads the private key. It signs verdicts and notes of erasures, nothing else.

Whoever may open its socket has it sign what is such a document, and is dated now; each signature is logged.
"""

import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import structlog
from pydantic import Field, TypeAdapter, ValidationError

from grader_service.errors import ConfigurationError, GraderError, UsageError
from grader_service.host.confinement import hide_this_process
from grader_service.model.base import Wire, first_problem
from grader_service.model.erasure import ErasureNote
from grader_service.model.keys import NEAR
from grader_service.model.verdict import Verdict
from grader_service.signer.asking import KEYS, MOST_BYTES, SIGN, Known, Refusal, Signed
from grader_service.signer.signatures import FolderSigner

log = structlog.get_logger(__name__)

_DOCUMENT: TypeAdapter[Verdict | ErasureNote] = TypeAdapter(
    Annotated[Verdict | ErasureNote, Field(discriminator="schema_id")]
)
_WAITING = 64
_NO_OTHERS = 0o117
"""The socket is for this process's user and group."""


class RequestHandler:
    """Answers requests."""

    def __init__(self, signer: FolderSigner) -> None:
        self._signer = signer
        self._signed: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def signed(self) -> Mapping[str, int]:
        """Signatures that were given, by the kind of document."""
        return MappingProxyType(self._signed)

    def answer(self, request: bytes) -> bytes:
        """The answer to one request, as JSON."""
        try:
            return self._answered(request).model_dump_json().encode()
        except GraderError as error:
            log.warning("not_signed", reason=str(error)[:500])
            return Refusal(refused=str(error)[:2000]).model_dump_json().encode()

    def _answered(self, request: bytes) -> Wire:
        if request == KEYS:
            return Known(keys=self._signer.keys())
        if not request.startswith(SIGN):
            raise UsageError(f"expected a request to sign or for the keys, got {request[:20]!r}")
        data = request[len(SIGN) :]
        kind, name = _required(data)
        # The bytes as they came: where they are not the canonical form of what was looked at, nobody verifies them.
        signature = self._signer.signature(data)
        with self._lock:
            self._signed[kind] += 1
            number = self._signed[kind]
        log.info("signed", kind=kind, id=name, key_id=signature.key_id, number=number)
        return Signed(signature=signature)


def _required(data: bytes) -> tuple[str, str]:
    """Kind and id of a document that may be signed."""
    try:
        document = _DOCUMENT.validate_json(data)
    except ValidationError as error:
        raise UsageError(f"expected a verdict or a note of an erasure, got {first_problem(error)}") from None
    if isinstance(document, Verdict):
        kind, name, at = "verdict", document.verdict_id, document.created_at
    else:
        kind, name, at = "erasure", document.erasure_id, document.finished_at
    now = datetime.now(UTC)
    if at.tzinfo is None or abs(at - now) > NEAR:
        raise UsageError(
            f"{kind} {name} is dated {at.isoformat()}, and here it is {now.isoformat()}; expected at most "
            f"{NEAR.total_seconds():.0f} s between them: set the clocks of the hosts"
        )
    return kind, name


def serve(signer: FolderSigner, path: Path) -> None:
    """Answers at a socket, which is for this process's user and group, until a signal ends it.

    Raises:
        ConfigurationError: another one listens there, or nobody can.
    """
    hide_this_process()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    _require_free(path)
    handler = RequestHandler(signer)
    before = os.umask(_NO_OTHERS)
    try:
        listener = Listener(str(path), family="AF_UNIX", backlog=_WAITING)
    except OSError as error:
        raise ConfigurationError(f"nobody can listen at {path}: {error}") from error
    finally:
        os.umask(before)
    log.info("signer_starts", socket=str(path), key=signer.public_key)
    with listener:
        while True:
            with contextlib.suppress(OSError):  # who asked is gone
                connection = listener.accept()
                threading.Thread(target=_talk, args=(connection, handler), daemon=True).start()


def _talk(connection: "Connection[Any, Any]", handler: RequestHandler) -> None:
    """Answers one who asks until they are gone."""
    with connection, contextlib.suppress(OSError, EOFError):
        while True:
            connection.send_bytes(handler.answer(connection.recv_bytes(MOST_BYTES)))


def _require_free(path: Path) -> None:
    try:
        Client(str(path), family="AF_UNIX").close()
    except OSError:
        path.unlink(missing_ok=True)  # left by one that was killed
    else:
        raise ConfigurationError(f"another signer listens at {path}; end it first, or name another socket")
