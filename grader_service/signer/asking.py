"""A signer in another process, asked through a Unix socket: its clients never have the key.

A request is its kind, the end of a line, and perhaps a document; the answer is JSON with `signature`, `keys`, or
`refused`: why not.
"""

import threading
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from grader_service.errors import InfrastructureError
from grader_service.model.base import Wire
from grader_service.model.keys import KeyList
from grader_service.model.verdict import Signature
from grader_service.signer.signatures import Signer, SignerAway

SIGN = b"sign\n"
KEYS = b"keys\n"
MOST_BYTES = 64 << 20
_TIMEOUT_S = 10.0


class Signed(Wire):
    """What was asked for."""

    signature: Signature


class Known(Wire):
    """The keys."""

    keys: KeyList


class Refusal(Wire):
    """Why it is not signed."""

    refused: str


_ANSWER: TypeAdapter[Signed | Known | Refusal] = TypeAdapter(Signed | Known | Refusal)


class SocketSigner(Signer):
    """Asks `grader signer` at its socket, where nobody need listen yet; use it from any thread, not across a fork."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: Connection[Any, Any] | None = None

    def signature(self, canonical: bytes) -> Signature:
        """See `Signer.signature`.

        Raises:
            SignerAway: it does not answer.
            InfrastructureError: it does not sign such a thing.
        """
        answer = self._asked(SIGN + canonical)
        if isinstance(answer, Signed):
            return answer.signature
        raise InfrastructureError(f"the signer refuses: {answer.refused if isinstance(answer, Refusal) else answer}")

    def keys(self) -> KeyList:
        """See `Signer.keys`."""
        answer = self._asked(KEYS)
        if isinstance(answer, Known):
            return answer.keys
        raise SignerAway(f"the signer names no keys: {answer.refused if isinstance(answer, Refusal) else answer}")

    def _asked(self, request: bytes) -> Signed | Known | Refusal:
        with self._lock:
            try:
                # A connection that was kept may be to one that has ended since: another one is tried, once.
                data = self._exchange(request) if self._connection is None else self._again(request)
                return _ANSWER.validate_json(data)
            except (OSError, EOFError, ValidationError) as error:
                self._close()
                raise SignerAway(
                    f"the signer does not answer at {self._path} ({type(error).__name__}: {error}); start it: "
                    "`grader signer`, with compose the service `signer`"
                ) from error

    def _again(self, request: bytes) -> bytes:
        try:
            return self._exchange(request)
        except (OSError, EOFError):
            self._close()
            return self._exchange(request)

    def _exchange(self, request: bytes) -> bytes:
        if self._connection is None:
            self._connection = Client(str(self._path), family="AF_UNIX")
        self._connection.send_bytes(request)
        if not self._connection.poll(_TIMEOUT_S):
            raise TimeoutError(f"no answer within {_TIMEOUT_S:g} s")
        return self._connection.recv_bytes(MOST_BYTES)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
