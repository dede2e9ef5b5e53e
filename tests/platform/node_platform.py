"""A lab platform in JavaScript, with a public Celery client from npm."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing

HERE = Path(__file__).parent / "node"


@dataclass
class NodePlatform:
    """A folder with the platform and its locked packages."""

    folder: Path

    def grade(self, redis_url: str, message: dict[str, Any], timeout_s: float = 150.0) -> dict[str, Any]:
        """Posts a message; returns the task's id, its `result`, and what `reply_to` was `told`."""
        (self.folder / "message.json").write_text(json.dumps(message))
        done = subprocess.run(
            ["node", "platform.js", redis_url, "message.json"],
            cwd=self.folder, check=False, capture_output=True, text=True, timeout=timeout_s,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def node_platform(tmp_path_factory):
    """The platform, installed from its lock file."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js and npm are not installed (apt-get install nodejs npm)")
    folder = tmp_path_factory.mktemp("node")
    for path in HERE.glob("*.js*"):
        shutil.copy(path, folder)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "cache")],
        cwd=folder, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return NodePlatform(folder)
