"""The process for the CPU: it sees no GPU, asks its parent, failures are answers; it does not outlive its parent."""

import os
import signal
import subprocess
import sys

import pytest

from tests.sandbox.guest.processes import state
from tests.waiting import wait_for

_PARENT = """
import os
import time
from sandbox.guest.trusted.children import WithoutGpu


def asked(in_parent):
    try:
        in_parent(int, "x")
    except RuntimeError as error:
        assert "invalid literal" in str(error)
        return os.getpid(), os.getenv("CUDA_VISIBLE_DEVICES"), in_parent(os.getenv, "CUDA_VISIBLE_DEVICES")


def failing(in_parent):
    raise ValueError("as_told")


def ending(in_parent):
    os.kill(os.getpid(), 9)


child = WithoutGpu()
try:
    child.call(failing)
except RuntimeError as error:
    pid, *gpus = child.call(asked)
    print(pid, error, *map(repr, gpus), flush=True)
input()
try:
    child.call(ending)
except EOFError:
    print("ended", flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent():
    """A program with such a child; ended at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"},
    ) as process:
        yield process
        process.kill()


def test_a_child_sees_no_gpu_and_ends_with_its_parent(parent):
    """The parent's own view stays as it is, failures go both ways, and a child that waits for work ends, too."""
    child, *told = parent.stdout.readline().split()
    assert told == ["as_told", "''", "'0'"]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: state(child) is None, 15.0)


def test_the_end_of_a_child_is_no_wait(parent):
    """A graph may crash the process or fill its memory: whoever waits for an answer hears at once that none comes."""
    parent.stdout.readline()
    parent.stdin.write("\n")
    parent.stdin.flush()
    assert parent.stdout.readline() == "ended\n"
