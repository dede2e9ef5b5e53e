"""Requests to the admin page: any method, address, header and form that a browser or a script can send."""

import asyncio
import atexit
import functools
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette

from grader_service.store.engine import Store
from grader_service.web.access import Role, Tokens
from grader_service.web.app import make_app
from grader_service.web.forms import FORM_TYPE
from grader_service.web.guard import COOKIE
from grader_service.web.queries import verdicts_of
from grader_service.web.serving import make_site
from tests.fuzz.files import folder
from tests.regrade.deps import planned, some_deps
from tests.regrade.stored import fill

_HOST = "127.0.0.1:8080"
_ESCAPES = "surrogateescape"
_LOOPS = ThreadPoolExecutor(1, thread_name_prefix="fuzz-page")
"""A thread of its own: where a test has started a browser, a loop of Playwright's already runs in the main thread."""


def page(data: bytes) -> object:
    """`{"method": …, "path": …, "query": …, "headers": [[name, value], …], "form": …}`; never answered with 500."""
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(asked, dict):
        return None
    place = _place()
    status, body = _LOOPS.submit(asyncio.run, place.ask(asked)).result()
    assert status < 500, (status, body[-300:])
    return status


class _Place:
    """A stocked store with its page, and an operator who is signed in."""

    def __init__(self) -> None:
        kept = folder("web")
        atexit.register(shutil.rmtree, kept, ignore_errors=True)
        store = Store(f"sqlite:///{kept}/grader.db")
        store.migrate()
        submission = fill(store, 6)[0]
        verdict = next(line.verdict_id for line in verdicts_of(store, submission) if line.current)
        self._names = {
            "{id}": submission,
            "{verdict}": verdict,
            "{batch}": planned(some_deps(store), cohorts=("autumn",)).batch_id,
        }
        site = make_site(store, Tokens(None, "operator-token-of-the-fuzzer"), "127.0.0.1")
        self._cookie = site.sessions.open(Role.OPERATOR, "fuzz")
        self._csrf = site.sessions.csrf(self._cookie)
        self._app: Starlette = make_app(site)

    async def ask(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body of the answer to one request."""
        form = f"csrf={self._csrf}&{_text(asked.get('form'))}".encode("utf-8", _ESCAPES)
        headers = {
            b"host": _HOST.encode(),
            b"cookie": f"{COOKIE}={self._cookie}".encode(),
            b"content-type": FORM_TYPE.encode(),
            b"origin": f"http://{_HOST}".encode(),
            b"sec-fetch-site": b"same-origin",
            b"content-length": str(len(form)).encode(),
        }
        given = asked.get("headers")
        for pair in given if isinstance(given, list) else []:
            if isinstance(pair, list) and len(pair) == 2:
                headers[_latin(pair[0]).lower()] = _latin(pair[1])
        path = _text(asked.get("path"))
        for name, value in self._names.items():
            path = path.replace(name, value)
        scope = {
            "type": "http",
            "method": _text(asked.get("method")) or "GET",
            "path": path if path.startswith("/") else f"/{path}",
            "raw_path": path.encode("utf-8", "replace"),
            "query_string": _latin(asked.get("query")),
            "headers": list(headers.items()),
            "client": ("127.0.0.1", 5),
            "server": ("127.0.0.1", 8080),
            "scheme": "http",
            "http_version": "1.1",
            "root_path": "",
        }
        body, status = bytearray(), 0
        sent = [{"type": "http.request", "body": form, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return sent.pop() if sent else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                body.extend(message.get("body", b""))

        await self._app(scope, receive, send)
        return status, bytes(body)


def _text(value: object) -> str:
    """Text as a server decodes it from a request line: no half characters."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _latin(value: object) -> bytes:
    """A header's or a query's bytes, without what ends a line."""
    text = value if isinstance(value, str) else ""
    return text.encode("utf-8", "replace").replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")


_place = functools.cache(_Place)
