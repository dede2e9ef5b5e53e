"""Artifacts from a web server: what it answers, and whose failure that is."""

import hashlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import ClassVar

import pytest
from fsspec.implementations.http import HTTPFileSystem

from grader_service.errors import InfrastructureError, SubmissionRejected
from grader_service.store import artifacts, away, files
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.away import LEFT_ALONE_S, Away, SourceAway, SourceSilent
from tests.hand_clock import HandClock
from tests.services.kept_port import kept_port
from tests.waiting import wait_for

DATA = b"dataset_dir = 'images'\n"
DIGEST = hashlib.sha256(DATA).hexdigest()


class Answers(BaseHTTPRequestHandler):
    """`/200/…` gives the data, `/403/…` that status, and so on; `/0/…` nothing until it may."""

    asked: ClassVar[list[str]] = []
    may_answer = threading.Event()

    def do_GET(self) -> None:
        """Answers as the address says."""
        self.asked.append(self.path)
        status = int(self.path.split("/")[1])
        if status == 0:
            self.may_answer.wait()
            status = 200
        body = DATA if status == 200 else b"no"
        self.send_response(status)
        if status in {301, 302, 303, 307, 308}:
            self.send_header("Location", "/200/secret.py")
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
    assert store.fetch(f"{address}/200/s.py", DIGEST) == len(DATA)


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
    """A server in trouble is no fault of the submission; what else lies there is fetched meanwhile."""
    clock = HandClock()
    store._away = Away(clock)
    asked = Answers.asked
    asked.clear()
    for _ in range(3):
        with pytest.raises(SourceAway):
            store.fetch(f"{address}/{status}/s.py", DIGEST)
    assert asked == [f"/{status}/s.py"] * 2  # HEAD and GET, once
    assert store.fetch(f"{address}/200/s.py", DIGEST) == len(DATA)
    asked.clear()
    clock.now += LEFT_ALONE_S
    with pytest.raises(SourceAway):
        store.fetch(f"{address}/{status}/s.py", "0" * 64)
    assert asked == [f"/{status}/s.py"] * 2


def test_a_server_that_is_away_is_our_failure(tmp_path):
    """Nobody is told that there is nothing, and it is not asked again at once, whatever is wanted of it."""
    clock = HandClock()
    with kept_port() as port:
        source = f"http://127.0.0.1:{port}"
        store = ArtifactStore(f"file://{tmp_path}", (source,))
        store._away = Away(clock)
        with pytest.raises(SourceSilent, match="could not be fetched"):
            store.fetch(f"{source}/s.py", DIGEST)
        with ThreadingHTTPServer(("127.0.0.1", port), Answers) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for _ in range(2):
                with pytest.raises(SourceAway, match=f"^{source} failed less than 30 s ago"):
                    store.fetch(f"{source}/200/s.py", DIGEST)
            clock.now += LEFT_ALONE_S
            assert store.fetch(f"{source}/200/s.py", DIGEST) == len(DATA)
            server.shutdown()


def test_one_that_says_nothing_is_away(store, address, monkeypatch):
    """It accepts connections, and that is all."""
    quick = artifacts.aiohttp.ClientTimeout(total=20, sock_read=0.05)
    monkeypatch.setattr(artifacts, "_PATIENCE", quick)
    HTTPFileSystem.clear_instance_cache()
    Answers.may_answer.clear()
    with pytest.raises(SourceSilent, match="Timeout"):
        store.fetch(f"{address}/0/s.py", DIGEST)
    Answers.may_answer.set()
    HTTPFileSystem.clear_instance_cache()


def test_after_a_while_one_asks_for_all(store, address):
    """Who comes meanwhile does not wait with it."""
    clock = HandClock()
    store._away = Away(clock)
    with pytest.raises(SourceSilent), store._away.asking(f"{address}/0/s.py"):
        raise SourceSilent
    clock.now += LEFT_ALONE_S
    Answers.asked.clear()
    Answers.may_answer.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(store.fetch, f"{address}/0/s.py", DIGEST)
        wait_for(lambda: Answers.asked, 5, every_s=0.01)
        with pytest.raises(SourceAway):
            store.fetch(f"{address}/200/s.py", DIGEST)
        Answers.may_answer.set()
        assert first.result() == len(DATA)
    assert store.fetch(f"{address}/200/s.py", DIGEST) == len(DATA)


def test_what_failed_is_not_remembered_without_end(store, address, monkeypatch):
    """Each message may name an address of its own; beyond so many all are asked once more."""
    monkeypatch.setattr(away, "_MOST", 2)
    Answers.asked.clear()
    for name in ("a", "b", "a", "c", "a"):
        with pytest.raises(SourceAway):
            store.fetch(f"{address}/500/{name}", DIGEST)
    assert Answers.asked[::2] == [f"/500/{name}" for name in ("a", "b", "c", "a")]


def test_one_that_is_long_in_answering_takes_nobodys_place(address, tmp_path):
    """Of the few that may arrive at once, here one, only those count whose bytes have begun to come."""
    store = ArtifactStore(f"file://{tmp_path}", (address,), max_bytes=100, max_arriving_bytes=100)
    Answers.asked.clear()
    Answers.may_answer.clear()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(store.fetch, f"{address}/0/s.py", DIGEST)
        wait_for(lambda: Answers.asked, 5, every_s=0.01)
        quick = pool.submit(store.fetch, f"{address}/200/s.py", DIGEST)
        try:
            assert quick.result(60) == len(DATA)
        finally:
            Answers.may_answer.set()
        assert slow.result() == len(DATA)


def test_a_store_of_ours_that_fails_is_no_fault_of_the_source(address, tmp_path):
    """Nor of whoever sent the address: nobody is told that there is nothing, and the server may be asked again."""
    (tmp_path / DIGEST[:2]).write_text("a file where the folder should be")
    store = ArtifactStore(f"file://{tmp_path}", (address,))
    for _ in range(2):
        with pytest.raises(InfrastructureError, match=f"the artifact store did not take {DIGEST}") as failure:
            store.fetch(f"{address}/200/s.py", DIGEST)
        assert not isinstance(failure.value, SourceAway)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_server_leads_anywhere_else(store, address, status):
    """Not even to an address that would be permitted: what is said is what is read."""
    with pytest.raises(
        SubmissionRejected, match=r"leads from .*/s\.py to another address, which is not followed"
    ) as told:
        store.fetch(f"{address}/{status}/s.py", DIGEST)
    assert told.value.code == "artifact.refused"
    assert not store.has(DIGEST)


def test_what_lies_there_is_not_told(store, address, tmp_path):
    """Neither by its digest nor by a file that stays."""
    with pytest.raises(SubmissionRejected) as told:
        store.fetch(f"{address}/200/s.py", "0" * 64)
    assert told.value.code == "artifact.digest_mismatch"
    assert DIGEST not in told.value.feedback
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_large_one_is_no_more_than_a_piece_in_memory(address, tmp_path, monkeypatch):
    """Read and written by the piece; one that is too large is given up on the way, and nothing of it stays."""
    monkeypatch.setattr(artifacts, "_CHUNK", 5)
    pieces = []
    writing = files._durably

    @contextmanager
    def watched(path):
        with writing(path) as file:
            yield SimpleNamespace(write=lambda piece: (pieces.append(len(piece)), file.write(piece)))

    monkeypatch.setattr(files, "_durably", watched)
    assert ArtifactStore(f"file://{tmp_path}", (address,)).fetch(f"{address}/200/s.py", DIGEST) == len(DATA)
    assert pieces == [5, 5, 5, 5, 3]
    small = ArtifactStore(f"file://{tmp_path}/small", (address,), max_bytes=12)
    with pytest.raises(SubmissionRejected) as told:
        small.fetch(f"{address}/200/s.py", DIGEST)
    assert told.value.code == "submission.too_large"
    assert pieces[5:] == [5, 5]
    assert [path for path in (tmp_path / "small").rglob("*") if path.is_file()] == []


def test_all_together_have_a_bound(address, tmp_path, monkeypatch):
    """No more arrive at once than have room when each is as large as one may be; the others wait."""
    store = ArtifactStore(f"file://{tmp_path}", (address,), max_bytes=100, max_arriving_bytes=250)
    at_once, most, lock = [], [], threading.Lock()
    copy = ArtifactStore._copy

    def slowly(self, *what):
        with lock:
            at_once.append(1)
            most.append(len(at_once))
        time.sleep(0.1)
        size = copy(self, *what)
        with lock:
            at_once.pop()
        return size

    monkeypatch.setattr(ArtifactStore, "_copy", slowly)
    monkeypatch.setattr(ArtifactStore, "_is_kept", lambda *_: False)
    with ThreadPoolExecutor(6) as pool:
        sizes = list(pool.map(lambda _: store.fetch(f"{address}/200/s.py", DIGEST), range(6)))
    assert sizes == [len(DATA)] * 6
    assert max(most) == 2
