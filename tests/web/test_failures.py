"""What the pages answer when an address is odd, the database is away, or a visitor is slow."""

import json
import socket
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.web.client import FORM, OPERATOR_ONLY, Client, served
from tests.web.stock import rename

THREADS = 48
"""More than the server has for pages."""


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/submissions/none",
        "/verdicts/none",
        "/verdicts/none/report",
        "/verdicts/none/json",
        "/batches/none",
        "/batches/none/live",
        "/batches/none/changes",
        "/batches/none/report",
        "/batches/none/do/apply",
        "/submissions/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/submissions/%00",
        "/submissions/%ff%fe",
        "/submissions/a%2F..%2Fb",
    ],
)
def test_what_is_not_there_is_404(operator, path):
    """With a page that repeats nothing unescaped."""
    answer = operator.get(path)
    assert answer.status == 404
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/submissions?status=%3Cb%3E", "there is no status"),
        ("/submissions?after=x", "`after` is a place"),
        ("/audit?before=x", "number of an event"),
        ("/audit?before=99999999999999999999", "number of an event"),
        ("/batches/{finished}/changes?kind=none", "this filter cannot be used"),
        ("/batches/{finished}/changes?check=%3Cb%3E", "check"),
        ("/batches/{finished}/changes?code=UPPER", "code"),
        ("/cohorts/report", "name the cohort"),
        ("/cohorts/report?cohort=a&lab=%3Cb%3E", "there cannot be"),
        ("/submissions?" + "a=1&" * 600, "too many parameters"),
    ],
)
def test_odd_addresses_are_400(place, operator, path, said):
    """And say what was expected."""
    answer = operator.get(path.format(finished=place.seen["finished"]))
    assert answer.status == 400
    assert said in answer.text
    assert "<b>" not in answer.text


@pytest.mark.parametrize("text", ["%00", "%ff", "%", "_", "\\", "'", '"', "%F0%9F%98%80", "x" * 5000], ids=repr)
def test_odd_searches_find_nothing_and_break_nothing(operator, text):
    """Wildcards and quotes are characters like others."""
    quoted = text.replace("\\", "%5C").replace('"', "%22")
    quoted = "%25" if text == "%" else quoted
    for path in (f"/submissions?q={quoted}&cohort={quoted}", f"/audit?actor={quoted}&kind={quoted}"):
        answer = operator.get(path)
        assert answer.status == 200
        assert "like this" in answer.text


def test_a_lost_database_is_said(quick_store, tmp_path):
    """503, in words, and the page works again when the database does."""
    path = tmp_path / "grader.db"
    with served(quick_store, OPERATOR_ONLY) as port:
        client = Client(port)
        assert client.get("/").status == 200
        quick_store.close()
        away = path.rename(tmp_path / "away.db")
        path.mkdir()
        answer = client.get("/")
        assert answer.status == 503
        assert "database does not answer" in answer.text
        assert "sqlite" not in answer.text.lower()
        ready = client.get("/ready")
        assert (ready.status, ready.text) == (503, "the database does not answer; the log of `grader web` says why\n")
        assert client.get("/alive").status == 200
        assert json.loads(client.get("/api/queue").text) == {
            "error": "Grading goes on or waits by itself; this page works again when the database does."
        }
        path.rmdir()
        away.rename(path)
        assert client.get("/").status == 200
        assert client.get("/ready").text == "ready\n"


def test_what_breaks_is_said_without_a_trace(place, visitor, capfd):
    """500 in words; the reason is in the log."""
    submission = place.seen["ids"][7]
    rename(place.store, submission, steps=3)
    answer = visitor.get(f"/submissions/{submission}")
    rename(place.store, submission, steps=[])
    assert answer.status == 500
    assert "Traceback" not in answer.text
    assert "jinja" not in answer.text.lower()
    said = capfd.readouterr()
    assert "page_failed" in said.out + said.err
    assert visitor.get(f"/submissions/{submission}").status == 200


def test_a_slow_visitor_holds_nobody_up(place, visitor):
    """Somebody who sends half a form costs the others nothing."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=30) as wire:
        wire.sendall(
            f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nOrigin: http://127.0.0.1:{place.port}\r\n"
            f"Content-Type: {FORM}\r\nContent-Length: 100\r\n\r\nhalf".encode()
        )
        began = time.monotonic()
        assert visitor.get("/").status == 200
        assert time.monotonic() - began < 5


def test_the_server_is_alive_while_every_thread_waits(quick_store):
    """A health check does not end a server that waits for its database, or makes many costly answers."""
    with served(quick_store) as port, ThreadPoolExecutor(THREADS) as pool:
        with quick_store.transaction():  # the only writer: everybody else waits
            waiting = [pool.submit(Client(port).get, "/") for _ in range(THREADS)]
            time.sleep(2)
            assert not any(one.done() for one in waiting)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/alive", timeout=5) as answer:
                assert answer.read() == b"alive\n"
            assert not any(one.done() for one in waiting)
        assert {one.result().status for one in waiting} == {200}
