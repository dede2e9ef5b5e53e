"""Artifacts from a web server: what it answers, and whose failure that is."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.store.artifacts import ArtifactStore

DATA = b"dataset_dir = 'images'\n"
DIGEST = hashlib.sha256(DATA).hexdigest()


class Answers(BaseHTTPRequestHandler):
    """`/200/…` gives the data, `/403/…` that status, and so on."""

    def do_GET(self) -> None:
        """Answers as the address says."""
        status = int(self.path.split("/")[1])
        body = DATA if status == 200 else b"no"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name of the standard library

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def store(address, tmp_path) -> ArtifactStore:
    """Fetches from that server."""
    return ArtifactStore(f"file://{tmp_path}", sources=(address,))


def test_artifacts_come_from_the_web(store, address):
    """By address and digest."""
    assert store.fetch(f"{address}/200/s.py", DIGEST) == (DIGEST, len(DATA))


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "refused"), (403, "refused"), (404, "not_found"), (410, "refused"), (451, "refused")],
)
def test_what_a_server_refuses_is_said_to_the_platform(store, address, status, code):
    """An address that expired answers the same for ever; nothing waits for it."""
    with pytest.raises(SubmissionRejected) as refusal:
        store.fetch(f"{address}/{status}/s.py", DIGEST)
    assert refusal.value.code == f"artifact.{code}"


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(store, address, status):
    """A server in trouble is no fault of the submission."""
    with pytest.raises(InfrastructureError):
        store.fetch(f"{address}/{status}/s.py", DIGEST)


def test_a_server_that_is_away_is_our_failure(tmp_path):
    """Nobody is told that there is nothing."""
    with pytest.raises(InfrastructureError):
        ArtifactStore(f"file://{tmp_path}", sources=("http://127.0.0.1:9",)).fetch("http://127.0.0.1:9/s.py", DIGEST)
