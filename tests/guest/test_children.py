"""The process for the CPU: it sees no GPU, its failures are answers, and it does not outlive its parent."""

import os
import signal
import subprocess
import sys

import pytest

from tests.guest.processes import state
from tests.waiting import wait_for

_PARENT = """
import os
import time
from sandbox.guest.trusted.children import without_gpu

pool = without_gpu()
child = pool.submit(os.getpid).result()
gpus = pool.submit(os.getenv, "CUDA_VISIBLE_DEVICES").result()
failure = pool.submit(int, "x").exception()
print(child, repr(gpus), os.environ["CUDA_VISIBLE_DEVICES"], type(failure).__name__, flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent():
    """A program with such a child; ended at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"},
    ) as process:
        yield process
        process.kill()


def test_a_child_sees_no_gpu_and_ends_with_its_parent(parent):
    """The parent's own view stays as it is, and a child that waits for work notices that nobody is left."""
    child, *told = parent.stdout.readline().split()
    assert told == ["''", "0", "ValueError"]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: state(child) is None, 15.0)
