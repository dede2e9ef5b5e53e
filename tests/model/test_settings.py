"""Settings that cannot be read are named, with what was expected."""

import subprocess
import sys

import pytest

from grader_service.errors import ConfigurationError
from grader_service.settings import Settings


def test_every_wrong_variable_is_named(monkeypatch):
    """In one message, with what it holds."""
    monkeypatch.setenv("GRADER_SANDBOX", "podman")
    monkeypatch.setenv("GRADER_LEASE_S", "soon")
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    assert "GRADER_SANDBOX: Input should be 'docker', 'kubernetes' or 'process', got 'podman'" in str(caught.value)
    assert "GRADER_LEASE_S" in str(caught.value)
    assert "'soon'" in str(caught.value)


def test_a_command_says_it_and_ends_with_2():
    """One line, no traceback."""
    command = [sys.executable, "-m", "grader_service", "doctor"]
    done = subprocess.run(command, env={"GRADER_SANDBOX": "podman"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "GRADER_SANDBOX" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_fast_path_is_the_default(monkeypatch):
    """One variable each turns it off."""
    settings = Settings()
    assert (settings.warm_runs, settings.reference_minutes) == (1, 30.0)
    monkeypatch.setenv("GRADER_WARM_RUNS", "0")
    monkeypatch.setenv("GRADER_REFERENCE_MINUTES", "0")
    settings = Settings()
    assert (settings.warm_runs, settings.reference_minutes) == (0, 0.0)
