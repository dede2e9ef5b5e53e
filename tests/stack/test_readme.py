"""The README is followed as it stands, from a clean clone with an empty home: as root, and as a user with Docker."""

import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.sandbox.engine_proxy import ENGINE

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(2400)]

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = "examples/reference_submission.ipynb"
READER = "grader-readme"
RATED = ("passed", "inconclusive")
"""What the reference may come out as: others may keep the host too busy to decide a throughput, as the README says."""


def blocks() -> list[str]:
    """Blocks of commands, in their order."""
    text = (ROOT / "README.md").read_text()
    return re.findall(r"(?:^    \S.*\n)+", text[: text.index("## Settings")], re.MULTILINE)


class Reader:
    """Somebody with a clean clone, who types what the README says."""

    def __init__(self, user: str, folder: Path) -> None:
        self._user = pwd.getpwnam(user)
        self.clone = folder / "clone"
        kept = {
            name: value for name, value in os.environ.items() if name.startswith(("PATH", "LANG", "PIP_", "UV_", "SSL"))
        }
        self._environment = kept | {
            "HOME": str(folder / "home"),
            "DOCKER_HOST": f"unix://{ENGINE}",
            "GRADER_DOCKER_SOCKET": ENGINE,
            "GRADER_STATE_DIR": str(folder / "state"),
        }
        (folder / "home").mkdir()
        # By whoever owns the repository; with hard links, its files would change their owner.
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, self.clone], check=True)
        subprocess.run(["chown", "-R", f"{self._user.pw_uid}:{self._user.pw_gid}", folder], check=True)

    def types(self, commands: str, *, may_end: tuple[int, ...] = (0,)) -> str:
        """What a shell that ends at the first failure shows, with one of these exit codes."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.clone,
            env=self._environment,
            user=self._user.pw_uid,
            group=self._user.pw_gid,
            extra_groups=[Path(ENGINE).stat().st_gid],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1500,
            check=False,
        )
        assert done.returncode in may_end, f"{commands}\n{done.stdout[-8000:]}"
        return done.stdout


@pytest.fixture
def user(request):
    """A user of this host; one that is made here is removed."""
    if os.geteuid() != 0:
        missing("users can only be made by root")
    if request.param == "root":
        yield "root"
        return
    subprocess.run(["useradd", "--system", "--no-create-home", READER], check=True)
    yield READER
    subprocess.run(["userdel", READER], check=True)


@pytest.fixture
def reader(user, engine):
    """With nothing of an earlier run; containers and volumes go at the end."""
    folder = Path(tempfile.mkdtemp(prefix="grader-readme-", dir="/var/tmp"))
    folder.chmod(0o755)
    made = Reader(user, folder)
    yield made
    made.types("images/compose.sh down -v --remove-orphans -t 5")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("user", ["root", READER], indirect=True)
def test_the_readme_does_what_it_says(reader):
    """Grades without Docker, with it, and over the queue of a service that `make up` has seen to grade."""
    demo, grading, service = (block.replace("PATH", REFERENCE) for block in blocks())
    reader.types(demo)
    verdict = json.loads((reader.clone / "build" / "verdict.json").read_text())
    assert verdict["status"] in RATED
    assert {check["outcome"] for check in verdict["checks"] if check["id"] != "throughput_ratio"} == {"passed"}
    assert (reader.clone / "build" / "report.html").is_file()
    shown = [line for command in grading.splitlines() for line in reader.types(command, may_end=(0, 4)).splitlines()]
    assert any(f'"{status}"' in shown for status in RATED)
    assert (reader.clone / "report.html").is_file()
    shown = reader.types(service.replace("--wait 300", "--wait 300 || [ $? = 4 ]"))
    places = [shown.index(text) for text in ("The service grades.", "posted try:1", "submission try:1")]
    assert places == sorted(places)
    assert "waiting for the verdict" in shown[places[1] : places[2]]
