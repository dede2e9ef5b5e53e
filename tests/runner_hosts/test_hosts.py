"""`grader hosts add|list|remove`: what an owner types, what a new host is given, and what is refused."""

import io
import ssl
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from grader_service.errors import UsageError
from grader_service.runner_hosts.bundle import SERVICES, passwords_of_runners
from grader_service.runner_hosts.register import Register
from tests import command_line
from tests.levels.parts import BIN, ROOT

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


@pytest.fixture
def secrets(tmp_path):
    """The folder as `images/up.sh` makes it, with a password of each service."""
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    for declared in COMPOSE["secrets"].values():
        name = Path(declared["file"].rpartition("}")[2]).name
        (folder / name).write_text(f"word of {name}\n")
    return folder


def hosts(secrets, *words, **changes):
    """What came of `grader hosts …`."""
    return command_line.invoked("hosts", words[0], "--secrets", str(secrets), *words[1:], **changes)


def added(secrets, name):
    """Name to entry of the archive, and to its bytes."""
    with tarfile.open(fileobj=io.BytesIO(hosts(secrets, "add", name).stdout_bytes)) as archive:
        members = archive.getmembers()
        return {one.name: one for one in members}, {
            one.name: archive.extractfile(one).read() for one in members if one.isfile()
        }


def test_a_host_is_given_its_own_secrets_and_no_others(secrets, monkeypatch):
    """Passwords of its services, both certificates, and a key that the control host does not keep."""
    monkeypatch.chdir(ROOT)
    entries, files = added(secrets, "gpu1")
    wanted = {
        Path(COMPOSE["secrets"][secret]["file"].rpartition("}")[2]).name
        for name in SERVICES
        for secret in COMPOSE["services"].get(name, {}).get("secrets", ())
    }
    assert files.keys() == wanted | {"hosts/host.key", "hosts/host.pem", "hosts/control.pem"}
    assert not {"web_viewer_token", "web_operator_token"} & wanted
    assert all(files[name] == f"word of {name}\n".encode() for name in wanted)
    # Containers' users read them; the folder that they are unpacked in is closed.
    assert {entry.mode for entry in entries.values() if entry.isfile()} == {0o444}
    assert entries["hosts"].mode == 0o755
    kept = [path.read_bytes() for path in secrets.rglob("*") if path.is_file()]
    assert files["hosts/host.key"] not in kept
    assert files["hosts/host.pem"] in kept


def test_hosts_are_listed_and_removed(secrets, monkeypatch):
    """Each has a certificate of its own; that of the control host stays the same."""
    monkeypatch.chdir(ROOT)
    assert hosts(secrets, "list").stdout == ""
    first, second = (added(secrets, name)[1] for name in ("gpu2", "gpu1"))
    assert first["hosts/control.pem"] == second["hosts/control.pem"]
    assert first["hosts/host.pem"] != second["hosts/host.pem"]
    assert hosts(secrets, "list").stdout == "gpu1\ngpu2\n"
    register = Register(secrets / "hosts")
    for name, files in (("gpu2", first), ("gpu1", second)):
        assert register.name_of(ssl.PEM_cert_to_DER_cert(files["hosts/host.pem"].decode())) == name
    assert "gpu2 is removed" in hosts(secrets, "remove", "gpu2").stderr
    assert hosts(secrets, "list").stdout == "gpu1\n"
    assert register.name_of(ssl.PEM_cert_to_DER_cert(first["hosts/host.pem"].decode())) is None


def test_the_control_hosts_key_is_made_once(secrets):
    """Another one would shut every runner host out."""
    hosts(secrets, "prepare")
    register = Register(secrets / "hosts")
    before = register.key.read_bytes(), register.certificate.read_bytes()
    hosts(secrets, "prepare")
    assert (register.key.read_bytes(), register.certificate.read_bytes()) == before
    # Another user's containers read it, below a folder that is closed.
    assert [stat.S_IMODE(path.stat().st_mode) for path in (register.folder, register.key)] == [0o755, 0o444]


@pytest.mark.parametrize("name", ["", "GPU1", "gpu 1", "-gpu", "gpu-", "../gpu", "a" * 64, "gpu1.example"])
def test_a_name_that_is_none_is_refused(secrets, monkeypatch, name):
    """It becomes a file's name."""
    monkeypatch.chdir(ROOT)
    with pytest.raises(UsageError, match="no name of a host: expected"):
        hosts(secrets, "add", "--", name)
    assert Register(secrets / "hosts").known() == {}


def test_what_cannot_be_done_is_said(secrets, monkeypatch, tmp_path):
    """A name that is taken, a host that nobody knows, another folder, a service that was never started."""
    with pytest.raises(UsageError, match=r"compose\.yaml cannot be read.*in the folder of the repository"):
        monkeypatch.chdir(tmp_path)
        hosts(secrets, "add", "gpu1")
    monkeypatch.chdir(ROOT)
    added(secrets, "gpu1")
    with pytest.raises(UsageError, match="is known already"):
        hosts(secrets, "add", "gpu1")
    with pytest.raises(UsageError, match="no host gpu9 is known; known are: gpu1"):
        hosts(secrets, "remove", "gpu9")
    with pytest.raises(UsageError, match=r"start .*GRADER_ROLE=control make up"):
        hosts(tmp_path / "nowhere", "prepare")
    (secrets / "redis_runner_password").unlink()
    with pytest.raises(UsageError, match="start the control host first"):
        hosts(secrets, "add", "gpu2")
    assert list(Register(secrets / "hosts").known()) == ["gpu1"]


def test_passwords_follow_compose_yaml(secrets, tmp_path):
    """A secret that a runner's service gets one day is handed out, too, whichever way it is named."""
    compose = tmp_path / "compose.yaml"
    text = """
    services:
      runner: {secrets: [one, {source: two, target: other}]}
      pods: {}
      judge: {secrets: [three]}
    secrets:
      one: {file: "${GRADER_SECRETS_DIR:-./secrets}/redis_password"}
      two: {file: "${GRADER_SECRETS_DIR:-./secrets}/postgres_password"}
      three: {file: "${GRADER_SECRETS_DIR:-./secrets}/web_viewer_token"}
    """
    compose.write_text(text)
    assert passwords_of_runners(compose, secrets).keys() == {"redis_password", "postgres_password"}


@pytest.mark.parametrize("address", ["7443", "host:", "host:port", ":7443", "host:70000"])
def test_an_address_that_is_none_is_refused(tmp_path, address):
    """With one that is."""
    with pytest.raises(UsageError, match=r"expected HOST:PORT, such as 192\.0\.2\.7:7443"):
        command_line.invoked(
            "hosts", "connect", "--certificates", str(tmp_path), "--control", address, "--at", "broker=127.0.0.1:1"
        )


def test_an_archive_is_read_by_nobody_else(secrets, tmp_path):
    """It has passwords and a private key, and lies where the shell was asked to put it."""
    file = tmp_path / "gpu1.tar"
    with file.open("wb") as archive:
        file.chmod(0o644)
        command = [BIN / "grader", "hosts", "add", "gpu1", "--secrets", str(secrets)]
        subprocess.run(command, check=True, stdout=archive, stderr=subprocess.DEVNULL, cwd=ROOT, timeout=60)
    assert file.stat().st_mode & 0o777 == 0o600
    assert tarfile.is_tarfile(file)
