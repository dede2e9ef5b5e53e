"""A check reaches neither the key nor what signs nor the process that asks for a signature, and judges as before."""

import ctypes
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader_service.host import confinement
from grader_service.host.confinement import files_are_confined, refusing
from tests.conftest import missing
from tests.judging.test_process import ROGUE
from tests.signer.process import a_signer

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
JUDGE = """
import sys
from pathlib import Path
from checks.registry import Registry
from grader_service.host.confinement import hide_this_process
from grader_service.judging.process import JudgeLimits, JudgeProcess
from tests.factories import an_evidence
from tests.judging.test_process import step_of

hide_this_process()
files = [Path(sys.argv[1])]
with JudgeProcess(JudgeLimits(check_timeout_s=60.0), files) as judging:
    judged = judging.judge(an_evidence(), [step_of("looks")], Registry(files=files)).checks
print(judged[0].result.feedback)
"""
SECRETIVE = """
import subprocess, sys
from grader_service.host.confinement import hide_this_process
if sys.argv[1] == "hidden":
    hide_this_process()
look = "import os; open(f'/proc/{os.getppid()}/mem'); print(open(f'/proc/{os.getppid()}/environ').read())"
print(subprocess.run([sys.executable, "-c", look], capture_output=True, text=True).stdout)
"""
"""A process that knows a secret, and another one of its user that looks."""


def as_in_a_container(code, *arguments, **variables):
    """What a program prints that has no capability."""
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "GRADER_SECRET": "known", **variables}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_hostile_check_finds_every_way_closed(tmp_path):
    """But for what honest code needs: its own, libraries where the loader looks for them, and nowhere to write to."""
    if not files_are_confined():
        missing("this kernel has no Landlock, or the container may not use it")
    (tmp_path / "check").mkdir()
    (tmp_path / "check" / "looks.py").write_text(ROGUE)
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "library").write_text("code")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    with a_signer(secrets):
        (secrets / "keys" / "verdict-signing.pem").rename(secrets / "verdict-signing.pem")
        seen = as_in_a_container(
            JUDGE, tmp_path / "check" / "looks.py", LD_LIBRARY_PATH=f"/nowhere:{tmp_path / 'libraries'}"
        )
        assert seen.strip() == "own code,library,null"


@pytest.mark.parametrize(("how", "seen"), [("hidden", False), ("open", True)])
def test_memory_and_environment_are_hidden_from_the_same_user(how, seen):
    """Whatever the kernel has of Landlock."""
    assert ("GRADER_SECRET=known" in as_in_a_container(SECRETIVE, how)) is seen


def filtered(lines, architecture, number):
    """What the kernel makes of a system call by this filter; it knows no other instructions than those."""
    place, value = 0, None
    while True:
        code, if_true, if_false, operand = lines[place]
        place += 1
        if code == 0x20:
            value = {0: number, 4: architecture}[operand]
        elif code == 0x06:
            return operand
        else:
            place += if_true if (value == operand if code == 0x15 else value >= operand) else if_false


@pytest.mark.parametrize(
    ("machine", "architecture", "other", "read"),
    [("x86_64", 0xC000003E, 0x40000003, 0), ("aarch64", 0xC00000B7, 0x40000028, 63)],
)
def test_each_machine_has_its_own_filter(machine, architecture, other, read):
    """By its own numbers, whichever machine this is; calls of its 32-bit programs, and of x32, are refused."""
    lines = refusing(machine)
    refused = {number for number in range(600) if filtered(lines, architecture, number) == 0x00050001}
    assert refused == set(confinement._REFUSED[machine].values())
    assert filtered(lines, architecture, read) == 0x7FFF0000
    assert filtered(lines, other, read) == filtered(lines, architecture, 0x40000000) == 0x00050001


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_numbers_are_the_kernels(machine):
    """As libseccomp has them, but for calls that are younger than it."""
    name = ctypes.util.find_library("seccomp")
    if name is None:
        missing("libseccomp is not installed (apt-get install libseccomp2)")
    known = {
        call: ctypes.CDLL(name).seccomp_syscall_resolve_name_arch(confinement._ARCHITECTURES[machine], call.encode())
        for call in confinement._REFUSED[machine]
    }
    known = {call: number for call, number in known.items() if number != -1}
    assert {"socket", "fchmodat", "setxattr", "ptrace"} <= set(known)
    assert known.items() <= confinement._REFUSED[machine].items()
