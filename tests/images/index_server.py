"""A package index on this host: real HTTP, with a password, redirects and whatever else indexes do."""

import base64
import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Index:
    """What it serves, and what it was asked."""

    port: int = 0
    login: str | None = None
    """`user:password` that every request must bring."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path, and the login that came with the request, of each one."""

    def url(self, path: str = "", login: str | None = None) -> str:
        """An address of this index."""
        return f"http://{f'{login}@' if login else ''}127.0.0.1:{self.port}{path}"

    def page(self, *links: str) -> None:
        """The page of uv, with these links."""
        anchors = "".join(f'<a href="{link}" data-requires-python="&gt;=3.8">file</a><br/>\n' for link in links)
        self.bodies["/simple/uv/"] = f"<!DOCTYPE html><html><body>{anchors}</body></html>".encode()


@contextlib.contextmanager
def serve(login: str | None = None) -> Iterator[Index]:
    """Serves an index until the end of the block."""
    index = Index(login=login)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            header = self.headers.get("Authorization", "")
            came = base64.b64decode(header[6:]).decode() if header.startswith("Basic ") else None
            index.asked.append((self.path, came))
            if index.login not in (None, came):
                self.send_error(401)
            elif self.path in index.redirects:
                self.send_response(302)
                self.send_header("Location", index.redirects[self.path])
                self.end_headers()
            elif self.path in index.bodies:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(index.bodies[self.path])
            else:
                self.send_error(404)

        def log_message(self, *args: object) -> None:
            """Stays quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
