"""What a process belongs to, asked of real processes."""

import os
import subprocess
import sys

from grader_service.host.gpu.homes import OWN, home

GONE = 5_000_001
"""Beyond the largest process id of Linux."""


def test_this_process_and_its_grandchildren_are_one_home():
    """Pods of the process runner are descendants of the grader."""
    inner = "import os; print(os.getpid(), flush=True); input()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        grandchild = int(child.stdout.readline())
        assert grandchild not in (child.pid, os.getpid())
        assert home(grandchild) == OWN
        child.communicate("\n")
    assert home(os.getpid()) == OWN


def test_a_process_that_is_gone_belongs_to_nothing():
    """It is told apart from any other."""
    assert home(GONE) != home(GONE + 1)
    assert str(GONE) in home(GONE)


def test_processes_of_one_group_share_a_home_unless_it_says_nothing(monkeypatch):
    """A container's group does; the root group and the grader's own do not."""
    groups = {1: "0::/system.slice/docker-ab.scope", 2: "0::/system.slice/docker-ab.scope", 3: "0::/", 4: "0::/user"}
    groups[os.getpid()] = "0::/user"

    def read(path):
        return groups[int(path.parts[2])] + "\n"

    monkeypatch.setattr("grader_service.host.gpu.homes.Path.read_text", read)
    monkeypatch.setattr("grader_service.host.gpu.homes._descends_from_us", lambda _: False)
    assert home(1) == home(2)
    assert "docker-ab" in home(1)
    assert home(3) == "process 3"
    assert home(4) == "process 4"
