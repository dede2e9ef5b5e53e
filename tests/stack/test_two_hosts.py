"""A control host and a runner host: two projects that share no network and no volume, and grade over one port."""

import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from grader_service.runner_hosts.bundle import SERVICES as ON_RUNNER_HOSTS
from grader_service.runner_hosts.certificates import connecting, make_pair
from tests.conftest import missing
from tests.runner_hosts.ends import given, greeted, refused
from tests.services.kept_port import kept_port
from tests.stack.test_compose import ROOT, Stack
from tests.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PING = b"PING\r\n"


def called(stack, *command, **options):
    """A program of the repository with a host's environment; it must succeed."""
    return subprocess.run(command, cwd=ROOT, env=stack.environment, check=True, timeout=900, **options)


@pytest.fixture(scope="module")
def folder():
    """For what both hosts keep on disk."""
    if shutil.which("docker-compose") is None:
        missing("docker-compose is not installed (apt-get install docker-compose)")
    if os.geteuid() != 0:
        missing("the state folder of a container's user can only be made by root")
    made = Path(tempfile.mkdtemp(prefix="grader-hosts-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def between(engine):
    """Address and port for runner hosts: of this machine, on a network beside those of both projects."""
    network = engine.networks.create(f"gradertest{secrets.token_hex(3)}")
    network.reload()
    with kept_port() as port:
        yield network.attrs["IPAM"]["Config"][0]["Gateway"], port
    network.remove()


@pytest.fixture(scope="module")
def control(engine, folder, between):
    """All services but the runner."""
    with ExitStack() as kept:
        names = ("REDIS", "RESULT", "METRICS", "WEB")
        ports = {f"GRADER_{name}_PORT": str(kept.enter_context(kept_port())) for name in names}
        made = Stack(engine, folder / "control", ports)
        made.environment |= {
            "GRADER_ROLE": "control",
            "GRADER_CONTROL_ADDRESS": between[0],
            "GRADER_CONTROL_PORT": str(between[1]),
        }
        try:
            # Of a time when it was the only host.
            labels = {"com.docker.compose.project": made.name, "com.docker.compose.service": "runner"}
            engine.containers.create("grader-redis:latest", "true", labels=labels)
            called(made, "images/up.sh")
            wait_for(lambda: made.healthy("judge"), 60, every_s=1.0)
            yield made
        finally:
            show(made)
            made.compose("down", "-v", "--remove-orphans", "-t", "5")


@pytest.fixture(scope="module")
def host(engine, folder, control):
    """A runner host that was given an archive, and whose runner is ready."""
    (folder / "host").mkdir()
    made = Stack(engine, folder / "host", {})
    same = ("GRADER_CONTROL_ADDRESS", "GRADER_CONTROL_PORT")
    made.environment |= {"GRADER_ROLE": "runner", "GRADER_RUNNER_NAME": "gpu1"} | {
        name: control.environment[name] for name in same
    }
    archive = called(control, ".venv/bin/grader", "hosts", "add", "gpu1", stdout=subprocess.PIPE).stdout
    unpacked = Path(made.environment["GRADER_SECRETS_DIR"])
    unpacked.mkdir(mode=0o700)
    subprocess.run(["tar", "-xp", "-C", unpacked], input=archive, check=True)
    try:
        called(made, "images/up.sh")
        called(made, "images/prove.sh")
        yield made
    finally:
        show(made)
        made.compose("down", "-v", "--remove-orphans", "-t", "5")


def show(stack):
    """What every service said last, for whoever looks at a failure."""
    for service, found in containers(stack).items():
        print(f"--- {service}, {found.status}\n{found.logs(tail=20).decode(errors='replace')}")


def containers(stack):
    """Of a project, by service."""
    label = {"label": f"com.docker.compose.project={stack.name}"}
    found = stack.engine.containers.list(all=True, filters=label)
    return {one.labels["com.docker.compose.service"]: one for one in found}


def test_a_submission_is_graded_across(control, host):
    """It is posted and judged on the one host and run on the other; `make up` of the control host shows its verdict."""
    said = called(control, "images/prove.sh", stdout=subprocess.PIPE, text=True).stdout
    assert "The service grades." in said
    assert "25 of 25 points" in said
    assert "run/cpu:gpu1:0" in said
    kept = [path.name for path in Path(host.environment["GRADER_STATE_DIR"], "pods", "runs").iterdir()]
    assert len(kept) == 1, "the prepared one alone: the other's went with its run"


def test_nothing_of_learners_is_on_the_control_host(control, host):
    """No container there has the engine, and the runner's host has no other service, network or volume of the first."""
    here, there = containers(control), containers(host)
    assert not set(ON_RUNNER_HOSTS) & here.keys()
    assert here.keys() >= {"redis", "results", "postgres", "judge", "regrade", "backup", "metrics", "web", "link"}
    assert {"link", "runner"} <= there.keys() <= {"link", *ON_RUNNER_HOSTS}
    assert not any("docker.sock" in json.dumps(one.attrs["Mounts"]) for one in here.values())

    def shared(found):
        networks = {name for one in found.values() for name in one.attrs["NetworkSettings"]["Networks"]}
        mounts = {mount["Source"] for one in found.values() for mount in one.attrs["Mounts"]}
        return networks | mounts

    # Containers without a network are in Docker's network `none`.
    assert shared(here) & shared(there) <= {"/run/lock", "none"}


def test_the_runner_has_no_secrets_beyond_its_own(control, host):
    """The host has what is in its archive; the runner's container the passwords alone, and `link` the key alone."""
    folder = Path(host.environment["GRADER_SECRETS_DIR"])
    passwords = {path.name for path in folder.iterdir()} - {"hosts"}
    assert passwords
    assert {path.name for path in (folder / "hosts").iterdir()} == {"host.key", "host.pem", "control.pem"}

    def mounted(service):
        sources = [Path(mount["Source"]) for mount in containers(host)[service].attrs["Mounts"]]
        return {source.name for source in sources if folder in source.parents}

    assert mounted("link") == {"hosts"}
    assert mounted("runner") <= passwords
    kept = [path for path in Path(control.environment["GRADER_SECRETS_DIR"]).rglob("*") if path.is_file()]
    others = [path.read_text().strip() for path in kept if path.name not in passwords and path.suffix != ".pem"]
    told = "".join(json.dumps(one.attrs) for one in containers(host).values())
    given = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert len(others) >= 3
    assert not [secret for secret in others if secret in told or secret in given]


def test_the_runner_reaches_three_services_and_no_other(host):
    """It knows no name of the Redis of the answers, and no address beyond its networks."""
    look = (
        "import socket, sys\n"
        "try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)\n"
        "except OSError: print('no')\n"
        "else: print('yes')"
    )

    def reached(name, port):
        done = containers(host)["runner"].exec_run(["python3", "-c", look, name, str(port)])
        return done.output.decode().strip()

    for name, port in (("redis", 6379), ("postgres", 5432), ("artifacts", 8080)):
        assert reached(name, port) == "yes"
    for name, port in (("results", 6379), ("redis", 6380), ("192.0.2.1", 443)):
        assert reached(name, port) == "no"


def client(folder):
    """How a host with these files connects to the broker."""
    return connecting(folder / "host.pem", folder / "host.key", folder / "control.pem", "broker")


def test_a_stranger_is_refused_at_the_port(control, host, between, tmp_path):
    """Without a certificate, and with one that somebody else made; with the host's own Redis answers."""
    published = containers(control)["link"].attrs["NetworkSettings"]["Ports"]["7443/tcp"]
    assert [(one["HostIp"], int(one["HostPort"])) for one in published] == [between]
    own = Path(host.environment["GRADER_SECRETS_DIR"], "hosts")
    assert greeted(between, client(own), PING).startswith(b"-NOAUTH")
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname, bare.verify_mode = False, ssl.CERT_NONE
    bare.set_alpn_protocols(["broker"])
    assert refused(between, bare, PING)
    other = given(tmp_path / "other", *make_pair("gpu1", server=False), (own / "control.pem").read_bytes())
    assert refused(between, client(other), PING)
    with socket.create_connection(between, 10) as plain:
        plain.sendall(PING)
        assert plain.recv(100) == b""


def test_a_host_that_is_removed_is_shut_out(control, host, between):
    """At once, without a restart: its runner says that it has lost database and broker. The last test here."""
    called(control, ".venv/bin/grader", "hosts", "remove", "gpu1")
    assert refused(between, client(Path(host.environment["GRADER_SECRETS_DIR"], "hosts")), PING)
    check = ["python3", "-m", "grader_service.health", "ready"]

    def said():
        done = containers(host)["runner"].exec_run(check)
        return done.exit_code == 1 and done.output.decode()

    wait_for(lambda: "broker" in (said() or ""), 60, every_s=1.0)
