"""What `images/up.sh` and `images/compose.sh` refuse, in words, without a stack."""

import os
import secrets
import shutil
import subprocess
import time

import pytest
from docker.errors import ContainerError

from tests.conftest import missing
from tests.levels.parts import ROOT
from tests.sandbox.engine_proxy import ENGINE

pytestmark = pytest.mark.usefixtures("engine")
IMAGE = "grader-service:latest"


@pytest.fixture
def project():
    """The name of a project that nobody has."""
    return f"gradertest{secrets.token_hex(3)}"


def script(name, *arguments, **environment):
    """One of `images/`, after it ended."""
    return subprocess.run(
        [str(ROOT / "images" / name), *arguments],
        env={**os.environ, "GRADER_DOCKER_SOCKET": ENGINE, **environment},
        check=False, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_new_password_is_not_made_for_an_old_database(engine, project, tmp_path):
    """As in a new clone on a host where the service ran before: it would wait for ever."""
    volume = engine.volumes.create(f"{project}_postgres-data")
    try:
        done = script("up.sh", GRADER_PROJECT=project, GRADER_SECRETS_DIR=str(tmp_path / "secrets"))
    finally:
        volume.remove()
    assert done.returncode == 2
    assert all(word in done.stderr for word in (volume.name, str(tmp_path / "secrets"), "compose.sh down -v"))
    assert not (tmp_path / "secrets").exists()


@pytest.fixture
def up(tmp_path, engine, project):
    """`up.sh` beside a command line and a compose that do nothing, with a lock folder: how it ended."""
    if not engine.images.list(name=IMAGE):
        missing("the service image is not built (`grader images build service`)")
    (tmp_path / "images").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "deploy" / "kubernetes").mkdir(parents=True)
    for name in ("images/up.sh", "images/role.sh", "images/signing_key.sh", "deploy/kubernetes/redis-start.sh"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("images/compose.sh", ".venv/bin/grader"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)

    def run(locks=tmp_path / "locks", *arguments, **changes):
        environment = {
            "GRADER_DOCKER_SOCKET": ENGINE,
            "GRADER_REDIS_IMAGE": "none",
            "GRADER_STATE_DIR": str(tmp_path / "state"),
            "GRADER_SECRETS_DIR": str(tmp_path / "secrets"),
            "GRADER_LOCK_DIR": str(locks),
            "GRADER_PROJECT": project,
            "GRADER_SERVICE_IMAGE": IMAGE,
        }
        return subprocess.run(
            [str(tmp_path / "images" / "up.sh"), *arguments], env={**os.environ, **environment, **changes},
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    yield run
    for volume in engine.volumes.list(filters={"name": f"{project}_"}):
        volume.remove()


@pytest.fixture
def inside(engine, project):
    """What a shell prints that sees the signer's keys and the artifacts, as root or another user."""
    volumes = {f"{project}_{name}": {"bind": f"/{name}"} for name in ("signer-keys", "artifacts")}

    def run(script, user="0"):
        said = engine.containers.run(IMAGE, ["-euc", script], entrypoint="sh", user=user, volumes=volumes, remove=True)
        return said.decode().split()

    return run


def grader_keys(folder, words):
    return f"GRADER_STATE_DIR=/{folder} python3 -m grader_service keys {words}\n"


def test_the_signing_key_is_made_once_and_is_the_signers(up, inside):
    """At the first start; nobody else may read it, nor look where it lies."""
    assert [up().returncode for _ in range(2)] == [0, 0]
    assert len(inside(grader_keys("signer-keys", "show --hex"), user="10002")) == 1
    assert inside("stat -c '%u:%g %a' /signer-keys /signer-keys/keys/*.pem") == [
        "10002:10001", "700", "10002:10001", "600"
    ]  # fmt: skip


def test_no_second_key_is_made_for_an_old_database(up, inside, engine, project, tmp_path):
    """Whose verdicts another one signed; what to do instead is said."""
    engine.volumes.create(f"{project}_postgres-data")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "postgres_password").write_text("known\n")
    done = up()
    assert done.returncode == 2
    assert all(
        word in done.stderr for word in (f"{project}_postgres-data", f"{project}_signer-keys", "keys make --key")
    )
    assert inside("ls /signer-keys") == []
    inside("chown 10002:10001 /signer-keys\n")
    inside(grader_keys("signer-keys", "make"), "10002")
    assert up().returncode == 0


@pytest.mark.parametrize("uid", ["0", "10001", "grader"])
def test_the_runner_is_no_other_user(project, tmp_path, uid):
    """Not root, nor that of another service; nothing is made."""
    done = script("up.sh", GRADER_PROJECT=project, GRADER_RUNNER_UID=uid, GRADER_SECRETS_DIR=str(tmp_path / "secrets"))
    assert (done.returncode, "expected a user id above 10003" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_second_runner_of_the_host_has_a_user_of_its_own(up, tmp_path):
    """To which its folder belongs."""
    assert up(GRADER_RUNNER_UID="10005").returncode == 0
    assert (tmp_path / "state" / "service").stat().st_uid == 10005
    assert (tmp_path / "state" / "pods").stat().st_uid == 10003


def test_a_lock_folder_that_the_runner_cannot_write_to(up, tmp_path):
    """Is refused and stays as it is; one that is not there is made, for every grader of the host."""
    closed, fresh = tmp_path / "closed", tmp_path / "fresh"
    closed.mkdir(mode=0o755)
    done = up(closed)
    assert done.returncode == 2
    assert f"cannot write to the lock folder {closed}" in done.stderr
    assert "GRADER_LOCK_DIR" in done.stderr
    assert closed.stat().st_mode & 0o7777 == 0o755
    for _ in range(2):
        done = up(fresh)
        assert (done.returncode, done.stderr) == (0, "")
    assert fresh.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize(
    ("role", "given", "told"),
    [
        ("all", {"GRADER_LABS_DIR": "/nowhere"}, "GRADER_LABS_DIR is '/nowhere', which is no folder"),
        ("runners", {}, "expected all (one host, the default), control or runner"),
        ("control", {}, "set it to the address of"),
        ("control", {"COMPOSE_FILE": "compose.yaml"}, "expected compose.control.yaml among its files"),
        ("runner", {"GRADER_RUNNER_NAME": "gpu1"}, "set it to the address of"),
        ("runner", {"GRADER_CONTROL_ADDRESS": "192.0.2.7"}, "set it to a name that no other runner host has"),
        (
            "runner",
            {"GRADER_CONTROL_ADDRESS": "192.0.2.7", "GRADER_RUNNER_NAME": "gpu1"},
            "grader hosts add gpu1 > gpu1.tar",
        ),
    ],
)
def test_a_host_that_is_told_too_little(project, tmp_path, role, given, told):
    """Of what it should be is told what is missing, and nothing is made."""
    folders = {f"GRADER_{name}_DIR": str(tmp_path / name.lower()) for name in ("SECRETS", "STATE", "LOCK")}
    done = script("up.sh", GRADER_PROJECT=project, GRADER_ROLE=role, **folders, **given)
    assert done.returncode != 0
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("key", "role"), [("control.key", "control"), ("host.key", "runner")])
@pytest.mark.parametrize("command", [("up.sh",), ("compose.sh", "up", "-d")], ids=" ".join)
def test_a_host_stays_what_it_was_made(project, tmp_path, command, key, role):
    """Where nobody says what it is; nothing is made or started."""
    (tmp_path / "secrets" / "hosts").mkdir(parents=True)
    (tmp_path / "secrets" / "hosts" / key).touch()
    done = script(*command, GRADER_PROJECT=project, GRADER_SECRETS_DIR=str(tmp_path / "secrets"))
    assert (done.returncode, f"GRADER_ROLE={role}" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["hosts"]


def test_the_runner_stops_before_its_broker(up, tmp_path, engine, project):
    """When all is started anew, and not for a part of it; and where a host is to have neither any more."""
    calls = tmp_path / "calls"
    (tmp_path / "images" / "compose.sh").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    assert up().returncode == 0
    assert calls.read_text().splitlines() == ["stop runner", "up -d"]
    calls.unlink()
    assert up(tmp_path / "locks", "judge").returncode == 0
    assert calls.read_text().splitlines() == ["up -d judge"]

    since = time.time()
    for name in ("pods", "runner"):
        labels = {"com.docker.compose.project": project, "com.docker.compose.service": name}
        engine.containers.create(IMAGE, labels=labels)
    assert up(tmp_path / "locks", GRADER_ROLE="control").returncode == 0
    gone = engine.events(
        since=since, until=time.time(), decode=True,
        filters={"event": "destroy", "label": f"com.docker.compose.project={project}"},
    )  # fmt: skip
    names = [event["Actor"]["Attributes"].get("com.docker.compose.service") for event in gone]
    assert names == ["runner", "pods"]


@pytest.mark.slow
def test_the_runner_reads_artifacts_as_a_member_of_their_group(up, inside):
    """The judge's, in a volume that was just made; nobody else does."""
    assert up().returncode == 0
    inside("mkdir /artifacts/ab; install -m 640 /etc/hostname /artifacts/ab/cd", "10001:10001")
    as_runner = "setpriv --reuid 10004 --regid 10004 --groups {} cat /artifacts/ab/cd"
    assert len(inside(as_runner.format(10003))) == 1
    with pytest.raises(ContainerError, match="Permission denied"):
        inside(as_runner.format(10004))
    assert inside("umask 077; mkdir /artifacts/ef; stat -c '%u:%g %A' /artifacts/ef", "10001:10001") == [
        "10001:10003", "drwx--S---"
    ]  # fmt: skip


def test_a_service_that_does_not_run_is_named(project):
    """With its project, whichever compose there is."""
    done = script("compose.sh", "exec", "judge", "true", GRADER_PROJECT=project)
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("'judge'", f"'{project}'", "GRADER_PROJECT"))
