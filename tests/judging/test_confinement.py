"""A check reaches neither the key nor what signs nor the process that asks for a signature, and judges as before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.confinement import files_are_confined
from tests.conftest import missing
from tests.judging.test_judge_process import ROGUE
from tests.signer.process import a_signer

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
JUDGE = """
import sys
from pathlib import Path
from checks.registry import Registry
from grader_service.confinement import hide_this_process
from grader_service.judge_process import JudgeLimits, JudgeProcess
from tests.factories import an_evidence
from tests.judging.test_judge_process import step_of

hide_this_process()
files = [Path(sys.argv[1])]
with JudgeProcess(JudgeLimits(check_timeout_s=60.0), files) as judging:
    judged = judging.judge(an_evidence(), [step_of("looks")], Registry(files=files))
print(judged[0].result.feedback)
"""
SECRETIVE = """
import subprocess, sys
from grader_service.confinement import hide_this_process
if sys.argv[1] == "hidden":
    hide_this_process()
look = "import os; open(f'/proc/{os.getppid()}/mem'); print(open(f'/proc/{os.getppid()}/environ').read())"
print(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout)
"""
"""A process that knows a secret, and another one of its user that looks."""


def as_in_a_container(code, *arguments):
    """What a program prints that has no capability."""
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "GRADER_SECRET": "known"}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_hostile_check_finds_every_way_closed(tmp_path):
    """But for its own code, which it must read: without that, nothing would show that it looked."""
    if not files_are_confined():
        missing("this kernel has no Landlock, or the container may not use it")
    (tmp_path / "check").mkdir()
    (tmp_path / "check" / "looks.py").write_text(ROGUE)
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    with a_signer(secrets):
        (secrets / "keys" / "verdict-signing.pem").rename(secrets / "verdict-signing.pem")
        assert as_in_a_container(JUDGE, tmp_path / "check" / "looks.py").strip() == "own code"


@pytest.mark.parametrize(("how", "seen"), [("hidden", False), ("open", True)])
def test_memory_and_environment_are_hidden_from_the_same_user(how, seen):
    """Whatever the kernel has of Landlock."""
    assert ("GRADER_SECRET=known" in as_in_a_container(SECRETIVE, how)) is seen
