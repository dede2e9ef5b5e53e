"""A clean environment of an author: a virtual environment of its own, an empty home, no network."""

import os
import shutil
import site
import stat
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PLUGIN = "grader_service.authoring.pytest_plugin"


@dataclass(frozen=True)
class AuthorsPlace:
    """Where an author works: `run` gives a finished process."""

    folder: Path
    home: Path

    def run(self, command: str, cwd: Path | None = None, *, ok: tuple[int, ...] = (0,), timeout: float = 600):
        """Runs a line of shell and checks its exit code."""
        bin_folder = self.folder / "venv" / "bin"
        kept = {name: os.environ[name] for name in ("DOCKER_HOST", "CI") if name in os.environ}
        environment = {
            **kept,
            "PATH": f"{bin_folder}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "GRADER_STATE_DIR": str(self.folder / "state"),
            "COLUMNS": "160",
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            ["bash", "-c", command], check=False, capture_output=True, text=True, cwd=cwd or self.home, env=environment,
            timeout=timeout,
        )  # fmt: skip
        assert done.returncode in ok, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done


@pytest.fixture(scope="session")
def clean_place():
    """The libraries of this interpreter, and nothing of this machine's beside them; for many tests."""
    folder = Path(tempfile.mkdtemp(prefix="grader-kit-", dir="/var/tmp"))
    home = folder / "home"
    home.mkdir()
    venv.EnvBuilder(symlinks=True).create(folder / "venv")
    own = next((folder / "venv").glob("lib/python*/site-packages"))
    libraries = [path for path in site.getsitepackages() if Path(path).is_dir()]
    lines = [f"import site; site.addsitedir({path!r})" for path in libraries]
    (own / "libraries.pth").write_text("\n".join(lines) + "\n")
    python = folder / "venv" / "bin" / "python"
    plugin = "" if entry_points(group="pytest11", name="grader") else f"-p {PLUGIN}"
    uv = Path(sys.executable).with_name("uv")
    install = f"{uv} pip install -q --offline --no-deps --no-build-isolation --python {python}"
    scripts = {
        "grader": f'exec {python} -m grader_service "$@"',
        "pytest": f'exec {python} -m pytest {plugin} "$@"',
        "ruff": f'exec {Path(sys.executable).with_name("ruff")} "$@"',
        "hatchling": f'exec {python} -m hatchling "$@"',
        # What a network would bring is there already.
        "pip": f'shift; exec {install} "$@"',
    }
    for name, line in scripts.items():
        script = folder / "venv" / "bin" / name
        script.write_text(f"#!/bin/bash\n{line}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    yield AuthorsPlace(folder, home)
    shutil.rmtree(folder)
