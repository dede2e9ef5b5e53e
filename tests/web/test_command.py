"""`grader web` as a process: the address, the tokens, the end."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tests.command_line import grader
from tests.service.harness import GRADER
from tests.web.client import OPERATOR_TOKEN, VIEWER_TOKEN, Client
from tests.web.openid_double import openid_double

pytestmark = pytest.mark.integration


@pytest.fixture
def environment(state_dir):
    """Of a process with a store of its own and nothing else set."""
    return {**os.environ, "GRADER_STATE_DIR": str(state_dir)}


@contextmanager
def begun(environment, *arguments):
    """A server on a free port, to the end of the block; and its address, which it prints when it can be opened."""
    command = [GRADER, "web", "--port", "0", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            line = process.stdout.readline().strip()
            assert line.startswith("http://127.0.0.1:"), line + process.stderr.read()
            yield process, line
        finally:
            process.kill()


def refused(state_dir, *arguments, **environment):
    """What a server says that does not start."""
    done = grader("web", "--port", "0", *arguments, state_dir=state_dir, timeout=60, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_it_serves_at_once_and_stops_when_told(environment, number):
    """The address is printed when it can be opened; a signal ends it with exit code 0."""
    with begun(environment) as (process, address):
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310
            assert b"Learners waiting" in answer.read()
        process.send_signal(number)
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)  # noqa: S310


def test_tokens_come_from_files(environment, tmp_path):
    """And open what they are for."""
    for role, token in (("viewer", VIEWER_TOKEN), ("operator", OPERATOR_TOKEN)):
        (tmp_path / role).write_text(f"{token}\n")
        environment[f"GRADER_WEB_{role.upper()}_TOKEN_FILE"] = str(tmp_path / role)
    with begun(environment, "--name", "grader.example") as (_, address):
        port = int(address.rstrip("/").rpartition(":")[2])
        assert Client(port).get("/").status == 303
        client = Client(port)
        assert client.sign_in(OPERATOR_TOKEN).status == 303
        assert client.get("/batches/new").status == 200
        assert client.get("/", Host="grader.example").status == 200
        assert client.get("/", Host="other.example").status == 421


def test_proxies_and_the_provider_come_from_settings(environment, tmp_path):
    """People are sent to the provider, and back to the address by which the proxy was asked."""
    (tmp_path / "secret").write_text("secret-of-the-tests\n")
    with openid_double() as double:
        environment |= {
            "GRADER_WEB_OIDC_ISSUER": double.issuer,
            "GRADER_WEB_OIDC_CLIENT_ID": "grader",
            "GRADER_WEB_OIDC_CLIENT_SECRET_FILE": str(tmp_path / "secret"),
            "GRADER_WEB_OIDC_OPERATORS": "grader-operators",
            "GRADER_WEB_TRUSTED_PROXIES": "127.0.0.1",
        }
        with begun(environment, "--name", "grader.example") as (_, address):
            client = Client(int(address.rstrip("/").rpartition(":")[2]))
            proxied = {"Host": "grader.example", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
            assert client.get("/", **proxied).status == 303
            there = client.get("/login/oidc", **proxied).headers["location"]
            assert there.startswith(f"{double.issuer}/auth?")
            assert "redirect_uri=https%3A%2F%2Fgrader.example%2Flogin%2Foidc%2Fcallback&" in there


@pytest.mark.parametrize("option", [("--host", "::"), ("--name", "grader.example")], ids=" ".join)
def test_it_refuses_to_show_everything_to_everybody(state_dir, option):
    """Beyond this machine only with a viewer token."""
    assert "GRADER_WEB_VIEWER_TOKEN_FILE" in refused(state_dir, *option)


def test_a_database_of_another_version_is_refused(state_dir, postgres):
    """Before the first page."""
    url, _ = postgres
    assert "grader store migrate" in refused(state_dir, GRADER_DATABASE_URL=url.format(name="postgres"))
