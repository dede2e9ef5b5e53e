"""Artifacts over HTTP: what a runner reads from its store's address, and what nobody can."""

import hashlib
import http.client
import threading
from contextlib import contextmanager

import pytest
import uvicorn

from grader_service.errors import InfrastructureError
from grader_service.runner_hosts.artifact_app import artifact_app
from grader_service.store.artifacts import ArtifactStore
from grader_service.store.files import ARRIVING
from tests.waiting import wait_for

DATA = b"dataset_dir = 'images'\n" * 200_000  # more than one piece
DIGEST = hashlib.sha256(DATA).hexdigest()


@contextmanager
def served(folder):
    """The port at which a folder is served, by the server of `grader hosts artifacts`."""
    server = uvicorn.Server(uvicorn.Config(artifact_app(folder), port=0, http="h11", log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_for(lambda: server.started, 10)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def kept(tmp_path):
    """A store's folder with one artifact."""
    ArtifactStore(f"file://{tmp_path}/kept").put(DATA)
    return tmp_path / "kept"


@pytest.fixture
def port(kept):
    """Where it is served."""
    with served(kept) as found:
        yield found


def answered(port, path, method="GET"):
    """Status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_a_runner_reads_an_artifact(port, tmp_path):
    """By its digest, whole and checked; with the settings that there are."""
    store = ArtifactStore(f"http://127.0.0.1:{port}")
    store.copy_to(DIGEST, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == DATA
    with pytest.raises(InfrastructureError, match="could not be read"):
        store.copy_to("0" * 64, tmp_path / "none")


def test_damage_is_noticed(kept, port, tmp_path):
    """Whatever came over the network is checked against the digest."""
    (kept / DIGEST[:2] / DIGEST).chmod(0o600)
    (kept / DIGEST[:2] / DIGEST).write_bytes(b"something else")
    with pytest.raises(InfrastructureError, match="is damaged"):
        ArtifactStore(f"http://127.0.0.1:{port}").copy_to(DIGEST, tmp_path / "out")


def test_nothing_else_is_there(kept, port):
    """No list, no file of another name, none outside of the folder, and nothing is written."""
    (kept / DIGEST[:2] / f"{ARRIVING}1").write_bytes(b"not whole")
    (kept / "secret").write_bytes(b"beside")
    (kept / "se").mkdir()
    (kept / "se" / "secret").write_bytes(b"beside")
    (kept.parent / DIGEST).write_bytes(b"outside")
    assert answered(port, f"/{DIGEST[:2]}/{DIGEST}") == (200, DATA)
    prefix = DIGEST[:2]
    hidden = ["/", f"/{prefix}", f"/{prefix}/", "/secret", "/se/secret", f"/{prefix}/{ARRIVING}1", f"/00/{DIGEST}"]
    outside = [
        f"/../{DIGEST}",
        f"/..%2f{DIGEST}",
        f"/..%2f..%2f/{DIGEST}",
        f"/{prefix}/..%2f..%2f{DIGEST}",
        f"//{DIGEST}",
    ]
    for path in [*hidden, *outside, f"/{prefix}/{DIGEST.upper()}"]:
        assert answered(port, path)[0] == 404, path
    for method in ("PUT", "POST", "DELETE"):
        assert answered(port, f"/{DIGEST[:2]}/{DIGEST}", method)[0] == 405
    assert answered(port, f"/{DIGEST[:2]}/{DIGEST}")[0] == 200
