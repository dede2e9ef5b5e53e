"""HTTP to an OpenID provider, which may neither hang for long nor send more than fits."""

import io
import time
from typing import Any

import requests
from authlib.integrations.requests_client import OAuth2Session
from requests.adapters import HTTPAdapter

_SILENT_S = 5.0
"""How long no byte may come."""
_BODY_S = 10.0
LONGEST = 1 << 20
"""Bytes of an answer's body, as it is after decompression."""
_PIECE = 4096


class BoundedSession(OAuth2Session):  # type: ignore[misc] # Authlib has no types
    """Authlib's session, whose answers come within a time and a size.

    When no byte comes for 5 s, or a body takes more than 10 s or 1 MiB, it raises an error of `requests` or `urllib3`.
    """

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, default_timeout=_SILENT_S, **values)
        for scheme in ("https://", "http://"):
            self.mount(scheme, _Bounded())


class _Bounded(HTTPAdapter):  # type: ignore[misc] # requests has no types
    def send(self, request: requests.PreparedRequest, *args: Any, **values: Any) -> requests.Response:
        """See `HTTPAdapter.send`; the body has been read."""
        answer = super().send(request, *args, **values)
        deadline = time.monotonic() + _BODY_S
        body = bytearray()
        try:
            while piece := answer.raw.read1(_PIECE, decode_content=True):
                body += piece
                if len(body) > LONGEST:
                    raise requests.ConnectionError(f"{request.url} sends more than {LONGEST} bytes")
                if time.monotonic() > deadline:
                    raise requests.Timeout(f"{request.url} needs more than {_BODY_S:.0f} s for its answer")
        finally:
            answer.close()
        answer.raw = io.BytesIO(body)
        return answer
