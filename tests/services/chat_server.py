"""A server of chat completions over real HTTP, which answers by the script of a test."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def an_opinion(opinion: str = "good", items: Any = (), why: str = "It is so.", **more: Any) -> dict[str, Any]:
    """What a model should answer."""
    return {"opinion": opinion, "items": list(items), "why": why, **more}


@dataclass
class ChatServer:
    """What it answers, and what it was asked."""

    url: str
    says: Callable[[Mapping[str, Any]], Any] = lambda _: an_opinion()
    """Given the request, the model's words: a text, or a value that is written as JSON."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """In place of a completion with the model's words."""
    slow_s: float = 0.0
    """Before each byte of the body, until the test is over."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of requests."""
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    """Headers `Authorization`."""
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: Mapping[str, Any]) -> bytes:
        """The body of an answer."""
        if self.body is not None:
            return self.body
        said = self.says(request)
        message = {"role": "assistant", "content": said if isinstance(said, str) else json.dumps(said)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        completion = {"id": "c-1", "object": "chat.completion", "created": int(time.time()), "choices": [choice]}
        return json.dumps(completion | {"usage": {"total_tokens": 1}}).encode()


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """One that finds everything good."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.asked.append(request)
            made.paths.append(self.path)
            made.keys.append(self.headers.get("authorization"))
            body = made.answer(request)
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                if not made.slow_s:
                    self.wfile.write(body)
                    return
                for byte in body:
                    if made.over.wait(made.slow_s):
                        return
                    self.wfile.write(bytes([byte]))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = ChatServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            made.over.set()
            server.shutdown()
            thread.join()
