"""What `images/up.sh` and `images/compose.sh` refuse, in words, without a stack."""

import os
import secrets
import subprocess

import pytest

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


def test_a_service_that_does_not_run_is_named(project):
    """With its project, whichever compose there is."""
    done = script("compose.sh", "exec", "judge", "true", GRADER_PROJECT=project)
    assert done.returncode == 1
    assert all(word in done.stderr for word in ("'judge'", f"'{project}'", "GRADER_PROJECT"))
