"""What `images/up.sh` and `images/compose.sh` refuse, in words, without a stack."""

import os
import secrets
import shutil
import subprocess

import pytest

from tests.conftest import missing
from tests.levels.parts import ROOT
from tests.sandbox.engine_proxy import ENGINE

pytestmark = pytest.mark.usefixtures("engine")


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
def up(tmp_path, engine):
    """`up.sh` beside a command line and a compose that do nothing, with a lock folder: how it ended."""
    if not engine.images.list(name="grader-service"):
        missing("the service image is not built (`grader images build service`)")
    (tmp_path / "images").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "images" / "up.sh", tmp_path / "images")
    for name in ("images/compose.sh", ".venv/bin/grader"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)

    def run(locks):
        environment = {
            "GRADER_DOCKER_SOCKET": ENGINE,
            "GRADER_REDIS_IMAGE": "none",
            "GRADER_STATE_DIR": str(tmp_path / "state"),
            "GRADER_LOCK_DIR": str(locks),
            "GRADER_PROJECT": f"gradertest{secrets.token_hex(3)}",
        }
        return subprocess.run(
            [str(tmp_path / "images" / "up.sh")], env={**os.environ, **environment},
            check=False, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


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


def test_a_service_that_does_not_run_is_named(project):
    """With its project, whichever compose there is."""
    done = script("compose.sh", "exec", "judge", "true", GRADER_PROJECT=project)
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("'judge'", f"'{project}'", "GRADER_PROJECT"))
