"""`compose.yaml` comes up for real, keeps its parts apart, and grades the reference over the queue."""

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from grader_service.queue.redis_check import unsafe
from grader_service.signer.signatures import signed_by
from sandbox.docker.options import LABEL
from sandbox.run_folder import OwnedFolder
from tests.conftest import missing
from tests.platform.platforms import node_platform  # noqa: F401 - a fixture
from tests.sandbox.engine_proxy import ENGINE
from tests.service.faults import scrape
from tests.service.local_service import containers_of
from tests.services.kept_port import kept_port
from tests.stack.test_compose_file import NETWORKS
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(1800)  # images, the stack's start and gradings of the reference, on a slow machine
ROOT = Path(__file__).resolve().parents[2]
WATCHED = ("redis", "results", "postgres", "signer", "judge", "regrade", "pods", "runner", "metrics", "web")
"""Services with a health check."""
SERVICES = (*WATCHED, "backup")
GRADER = ("python3", "-m", "grader_service")


class Stack:
    """A project of its own on this engine."""

    def __init__(self, engine, folder: Path, ports: dict[str, str]) -> None:
        self.engine = engine
        self.name = f"gradertest{secrets.token_hex(3)}"
        self.environment = {
            **os.environ,
            "GRADER_PROJECT": self.name,
            "GRADER_STATE_DIR": str(folder / "state"),
            "GRADER_SECRETS_DIR": str(folder / "secrets"),
            "GRADER_RUNNER_NAME": self.name,
            "GRADER_DOCKER_SOCKET": ENGINE,
            "GRADER_REDIS_IMAGE": "grader-redis:latest",
            "GRADER_POSTGRES_IMAGE": "grader-postgres:latest",
            **ports,
        }

    def start(self, *services: str) -> None:
        """With secrets, folders and images; all services, unless some are named, and then they are healthy."""
        subprocess.run([str(ROOT / "images" / "up.sh"), *services], env=self.environment, check=True, timeout=900)
        wait_for(lambda: all(self.healthy(service) for service in services or WATCHED), 60, every_s=1.0)

    def compose(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        command = [str(ROOT / "images" / "compose.sh"), *arguments]
        return subprocess.run(command, env=self.environment, check=True, timeout=300, text=True, **options)

    def container(self, service: str):
        label = {"label": [f"com.docker.compose.project={self.name}", f"com.docker.compose.service={service}"]}
        (found,) = self.engine.containers.list(all=True, filters=label)
        return found

    def healthy(self, service: str) -> bool:
        return self.container(service).attrs["State"].get("Health", {}).get("Status") == "healthy"

    def redis_url(self, name: str, password: str | None = None, user: str = "") -> str:
        """On this host: of `REDIS`, or of `RESULT`; for the platform without a name unless another user is named."""
        file = f"redis_{user}_password" if user else "redis_password"
        known = Path(self.environment["GRADER_SECRETS_DIR"], file).read_text().strip()
        return f"redis://{user}:{password or known}@127.0.0.1:{self.environment[f'GRADER_{name}_PORT']}/0"

    def doctor(self):
        """What `grader doctor --service` says in the judge's container: exit code and text."""
        command = ["python3", "-m", "grader_service", "doctor", "--service"]
        done = self.container("judge").exec_run(command, environment={"COLUMNS": "300"})
        return done.exit_code, done.output.decode()


@pytest.fixture(scope="module")
def ports():
    """Settings of those that the stack publishes."""
    with ExitStack() as kept:
        names = ("REDIS", "RESULT", "METRICS", "WEB")
        yield {f"GRADER_{name}_PORT": str(kept.enter_context(kept_port())) for name in names}


@pytest.fixture(scope="module")
def stack(engine, ports):
    """The stack, up and healthy; everything of it is removed afterwards."""
    if shutil.which("docker-compose") is None:
        missing("docker-compose is not installed (apt-get install docker-compose)")
    if os.geteuid() != 0:
        missing("the state folder of a container's user can only be made by root")
    folder = Path(tempfile.mkdtemp(prefix="grader-stack-", dir="/var/tmp"))
    folder.chmod(0o755)
    # What `grader grade` as root leaves in the folder that the service is given, too.
    OwnedFolder(folder / "state", "of-root").create()
    made = Stack(engine, folder, ports)
    try:
        made.start()
        yield made
    finally:
        for service in SERVICES:
            if made.engine.containers.list(all=True, filters={"name": f"{made.name}_{service}"}):
                found = made.container(service)
                print(f"--- {service}, {found.status}\n{found.logs(tail=40).decode(errors='replace')}")
        made.compose("down", "-v", "--remove-orphans", "-t", "5")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def verdict(stack, node_platform):  # noqa: F811 - the fixture
    """The reference submission, posted by a platform in JavaScript; measuring it is tested without the stack."""
    url, results = stack.redis_url("REDIS"), stack.redis_url("RESULT")
    shown = stack.container("signer").exec_run(["python3", "-m", "grader_service", "keys", "show", "--hex"], demux=True)
    assert shown.exit_code == 0, shown.output
    key = shown.output[0].decode()
    reference = str(ROOT / "examples" / "reference_submission.ipynb")
    steps = ("baseline", "pipeline", "reflection")
    return node_platform.grade(url, key, reference, "stack:1", *steps, result_url=results, timeout_s=290)


def test_the_stack_grades_the_reference_over_the_queue(verdict, stack):
    """A rehearsal passes with every check, in isolated pods of the host's engine, signed by the judge."""
    assert (verdict["status"], verdict["mode"]) == ("passed", "rehearsal")
    assert {check["outcome"] for check in verdict["checks"]} == {"passed"}
    assert (verdict["provenance"]["isolated"], verdict["provenance"]["oci_runtime"]) == (True, "runc")
    assert signed_by(verdict) is not None
    state_dir = Path(stack.environment["GRADER_STATE_DIR"], "pods")
    # Folders go once the verdict is on its way; what stays then is the next run, which is prepared.
    wait_for(lambda: len(list((state_dir / "runs").iterdir())) == 1, 15)
    (prepared,) = (state_dir / "runs").iterdir()
    waiting = wait_for(lambda: containers_of(stack.engine, state_dir), 15)
    assert {container.labels[LABEL] for container in waiting} == {prepared.name}


@pytest.mark.usefixtures("verdict")
def test_figures_are_served(stack):
    """The metrics container has seen the verdict and the device."""
    port = int(stack.environment["GRADER_METRICS_PORT"])
    # Events are read when they have settled.
    wait_for(lambda: scrape(port).get('grader_verdicts_total{status="passed"}') == 1.0, 5, every_s=1.0)
    assert f'grader_device_seen_seconds{{device="cpu:{stack.name}:0"}}' in scrape(port)


@pytest.mark.usefixtures("verdict")
def test_answers_lie_apart_from_what_comes_in(stack):
    """The verdict is where platforms read it, and nothing of it fills the broker; each has its own limit of memory."""
    broker, results = (redis.Redis.from_url(stack.redis_url(name, user="admin")) for name in ("REDIS", "RESULT"))
    with broker, results:
        stored, strayed = (
            [key for key in server.scan_iter(match="celery-task-meta-*") if b"stack:1" in server.get(key)]
            for server in (results, broker)
        )
        assert (len(stored), strayed) == (1, [])
        for server in (broker, results):
            assert unsafe(server) == []
            assert server.info("memory")["maxmemory"] == 512 << 20
    code, text = stack.doctor()
    assert code == 0, text
    for name in ("broker", "results"):
        assert re.search(rf"^{name} +[0-9]+%", text, re.MULTILINE), text


def networks(container) -> set[str]:
    names = container.attrs["NetworkSettings"]["Networks"]
    return {name.partition("_")[2] for name in names if name != "none"}


def test_broker_and_database_are_apart(stack):
    """Whoever reaches the one from outside does not reach the other; only the workers are on both, and no stranger.

    Only the judge reaches the Redis of the answers.
    """
    found = {service: networks(stack.container(service)) for service in SERVICES}
    assert found == {service: NETWORKS[service] for service in SERVICES}
    for name in ("broker", "results", "database", "platform", "monitoring"):
        (network,) = stack.engine.networks.list(names=[f"{stack.name}_{name}"])
        network.reload()
        assert network.attrs["Internal"] is (name in {"broker", "results", "database"})
        # No learner's pod: those have no network at all.
        assert all(member["Name"].startswith(stack.name) for member in network.attrs["Containers"].values())


def test_the_signer_alone_has_the_key(stack):
    """No other container has the file, and those that ask for signatures cannot put another signer in its place."""
    look = [
        "sh",
        "-c",
        "(find / -name '*.pem' -path '*/keys/*'; touch /run/grader-signer/x && echo x) 2>/dev/null",
    ]
    found = {service: stack.container(service).exec_run(look).output for service in ("signer", "judge", "regrade")}
    assert found.pop("signer") != b""
    assert set(found.values()) == {b""}


def test_who_has_the_engine_and_the_secrets(stack):
    """Only the pod broker has the engine's socket, nobody has secrets in the environment, and none runs as root."""
    sockets, groups = [], []
    group = str(Path(ENGINE).stat().st_gid)
    passwords = [path.read_text().strip() for path in Path(stack.environment["GRADER_SECRETS_DIR"]).iterdir()]
    for service in SERVICES:
        container = stack.container(service)
        attrs = container.attrs
        if any(mount["Destination"] == "/var/run/docker.sock" for mount in attrs["Mounts"]):
            sockets.append(service)
        if group in (attrs["HostConfig"]["GroupAdd"] or ()):
            groups.append(service)
        told = json.dumps([attrs["Config"]["Env"], attrs["Config"]["Cmd"], container.top()["Processes"]])
        assert not [password for password in passwords if password in told]
        assert attrs["Config"]["User"] in {"999:999", "10001:10001", "10002:10001", "10003:10003", "10004:10004"}
        assert attrs["HostConfig"]["CapDrop"] == ["ALL"]
        assert "no-new-privileges:true" in attrs["HostConfig"]["SecurityOpt"]
        assert attrs["HostConfig"]["ReadonlyRootfs"] is (service != "postgres")
    assert (sockets, groups) == (["pods"], ["pods"])
    done = stack.container("runner").exec_run(["id", "-G"])
    assert done.output.decode().split() == ["10004", "10003"]


@pytest.mark.usefixtures("verdict")
def test_a_verdict_is_judged_again_and_applied(stack):
    """A batch that is planned in the stack is worked on by its own worker, and signed with the judge's key."""

    def grader(*words: str) -> str:
        done = stack.container("judge").exec_run(["python3", "-m", "grader_service", "regrade", *words], demux=True)
        assert done.exit_code == 0, done.output
        return done.output[0].decode()

    batch = json.loads(grader("plan", "--all", "--reason", "a look at the stack", "--json"))
    assert {count["level"] for count in batch["estimate"]["counts"]} == {"judge"}
    grader("start", batch["batch_id"])
    lines = grader("watch", batch["batch_id"], "--json").splitlines()
    assert json.loads(lines[-1])["state"] == "finished"
    grader("diff", batch["batch_id"])
    grader("apply", batch["batch_id"], "--notify", "none")


def test_the_admin_page_asks_for_a_token(stack):
    """It answers on this host, and shows nothing to those who have no token."""
    port, folder = stack.environment["GRADER_WEB_PORT"], Path(stack.environment["GRADER_SECRETS_DIR"])
    url = f"http://127.0.0.1:{port}/api/queue"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=10)
    assert refused.value.code == 401
    token = (folder / "web_viewer_token").read_text().strip()
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - of this host
        assert "needs_attention" in json.load(answer)


@pytest.mark.parametrize("name", ["REDIS", "RESULT"])
def test_wrong_passwords_are_refused(stack, name):
    """Both instances of Redis ask for theirs."""
    with redis.Redis.from_url(stack.redis_url(name, "guess")) as client, pytest.raises(redis.AuthenticationError):
        client.ping()


@pytest.mark.usefixtures("verdict")
@pytest.mark.slow
def test_workers_and_platforms_have_users_of_their_own(stack):
    """None was refused anything so far; a platform that is added may post until it is removed."""
    for name in ("REDIS", "RESULT"):
        with redis.Redis.from_url(stack.redis_url(name, user="admin")) as server:
            assert {client["user"] for client in server.client_list()} >= {"judge"}
            refused = {(entry["username"], entry["object"]) for entry in server.acl_log() if entry["reason"] != "auth"}
            assert refused == set()
    said = stack.compose(
        "run", "--rm", "platforms", "platforms", "add", "lms", "--json", stdout=subprocess.PIPE
    ).stdout.splitlines()
    told = json.loads(said[-1])
    with redis.Redis.from_url(told["redis_url"]) as broker, redis.Redis.from_url(told["result_url"]) as results:
        assert (broker.ping(), results.get("celery-task-meta-lms:1")) == (True, None)
        stack.compose("restart", "-t", "5", "redis")
        wait_for(lambda: stack.healthy("redis"), 60, every_s=1.0)
        assert broker.ping()
        stack.compose("run", "--rm", "platforms", "platforms", "remove", "lms")
        with pytest.raises(redis.AuthenticationError):
            broker.ping()


def test_a_state_folder_of_another_user_is_refused(stack, tmp_path):
    """By `images/up.sh`, which changes no owner, with the command that mends it; nothing is started."""
    strange = tmp_path / "service" / "runs.lock"
    strange.parent.mkdir()
    strange.touch()
    done = subprocess.run(
        [str(ROOT / "images" / "up.sh")],
        env=stack.environment | {"GRADER_STATE_DIR": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert f"chown -R 10004:10004 {strange.parent}" in done.stderr
    assert strange.stat().st_uid == os.geteuid()


@pytest.mark.usefixtures("verdict")
@pytest.mark.slow
def test_a_runner_that_cannot_grade_says_why(stack):
    """In its health check, to `grader doctor --service` and in the figures, until it is mended."""
    runner = stack.container("runner")

    def check() -> tuple[int, str]:
        done = runner.exec_run(runner.attrs["Config"]["Healthcheck"]["Test"][1:])
        return done.exit_code, done.output.decode()

    assert (check()[0], stack.doctor()[0]) == (0, 0)
    folder = Path(stack.environment["GRADER_STATE_DIR"], "service")
    lock = folder / "runs.lock"
    os.chown(lock, 0, 0)  # as `grader grade` made it as root
    try:
        told = f"{lock} belongs to root (uid 0)"
        assert wait_for(lambda: told in check()[1], 30, every_s=1.0)
        code, said = check()
        assert (code, f"chown -R 10004:10004 {folder}" in said) == (1, True)
        code, text = stack.doctor()
        assert (code, told in text) == (1, True)
        figure = f'grader_worker_ready{{role="run",worker="run/cpu:{stack.name}:0"}}'
        assert scrape(int(stack.environment["GRADER_METRICS_PORT"]))[figure] == 0.0
    finally:
        os.chown(lock, 10004, 10004)
    wait_for(lambda: check()[0] == 0, 30, every_s=1.0)
    assert stack.doctor()[0] == 0


@pytest.mark.usefixtures("verdict")
@pytest.mark.slow
def test_a_stack_that_was_lost_is_restored(stack, node_platform):  # noqa: F811 - the fixture
    """Database, artifacts, answers and keys are gone. What was answered before the backup and since is not graded anew.

    The last test of this stack.
    """

    def ask(submission_id: str) -> dict[str, Any]:
        shown = stack.container("signer").exec_run(
            ["python3", "-m", "grader_service", "keys", "show", "--hex"], demux=True
        )
        url, results = stack.redis_url("REDIS"), stack.redis_url("RESULT")
        file = str(ROOT / "examples" / "first_step.py")
        return node_platform.grade(
            url, shown.output[0].decode(), file, submission_id, "baseline", result_url=results, timeout_s=120
        )

    def run(service: str, *words: str) -> str:
        done = stack.compose("run", "--rm", service, *words, capture_output=True)
        return done.stdout + done.stderr

    first = ask("stack:before")
    assert "rows" in run("backup", "backup", "make")
    second = ask("stack:since")
    stack.compose("down", "-v", "-t", "5")
    stack.start("postgres", "signer")
    began = time.monotonic()
    said = run("restore")
    assert time.monotonic() - began < 60
    assert "1 verdicts restored" in said
    assert ", 0 are not" in said
    assert "the signer does not know these earlier public keys" in said
    known = stack.compose("run", "--rm", "-T", "backup", "backup", "keys", capture_output=True).stdout
    stack.compose("exec", "signer", *GRADER, "keys", "add", "-", input=known, capture_output=True)
    stack.start()
    assert [ask("stack:since"), ask("stack:before")] == [second, first]
    ids = Path(stack.environment["GRADER_STATE_DIR"]) / "ids"
    ids.write_text("stack:since\nstack:never\n")
    reconcile = ["exec", "judge", "python3", "-m", "grader_service", "reconcile", "-"]
    with ids.open() as given, pytest.raises(subprocess.CalledProcessError) as told:
        stack.compose(*reconcile, stdin=given, capture_output=True)
    assert (told.value.returncode, told.value.stdout.split()[3:]) == (1, ["stack:never", "unknown"])
