"""Any language with a Celery client can be a platform: here JavaScript, with a client from npm."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.service.conftest import redis, service  # noqa: F401 - fixtures

HERE = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    """The JavaScript platform with its locked packages."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        missing("Node.js and npm are not installed (apt-get install nodejs npm)")
    folder = tmp_path_factory.mktemp("node")
    for path in HERE.glob("*.js*"):
        shutil.copy(path, folder)
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(folder / "cache")],
        cwd=folder, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return folder


def test_a_node_platform_posts_and_reads_its_verdict(platform, service):  # noqa: F811 - the fixture
    """Celery protocol 2 from JavaScript: the task's result and the message to `reply_to` hold the same verdict."""
    service.judge()
    service.runner()
    message = service.message("node:1", reply_to={"queue": "node-platform", "task": "lab.verdict_ready"})
    (platform / "message.json").write_text(json.dumps(message))
    done = subprocess.run(
        ["node", "platform.js", service.redis.url, "message.json"],
        cwd=platform, check=False, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (answer["result"]["submission_id"], answer["result"]["status"]) == ("node:1", "passed")
    assert answer["told"] == answer["result"]
    assert service.one_verdict("node:1") == answer["result"]
