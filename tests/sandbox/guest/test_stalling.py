"""Code that waits for what never comes is noticed; code that works, in whatever process, is not."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WATCHED = """
import os, queue, subprocess, sys, threading, time
from sandbox.guest.learner.stalling import StallWatch

os.setsid()
rang = threading.Event()
watch = StallWatch(1.5, rang.set, poll_s=0.7)
watch.start()
{code}
print("rang" if rang.is_set() else "silent")
"""
WAITS = "rang.wait(15)"
WORKS = {
    "computes": "until = time.monotonic() + 2\nwhile time.monotonic() < until: sum(range(1000))",
    "writes": "for _ in range(60):\n    open(os.devnull, 'w').write('x')\n    time.sleep(0.06)",
    "has a child that does": (
        "busy = 'import time; t = time.monotonic()\\nwhile time.monotonic() - t < 4: pass'\n"
        "subprocess.run([sys.executable, '-c', busy], start_new_session=True)"
    ),
    "has a thread that does": (
        "def work():\n    for _ in range(70):\n        open('/dev/zero', 'rb').read(10)\n        time.sleep(0.05)\n"
        "threading.Thread(target=work).start()\ntime.sleep(3.6)"
    ),
    "is over": "watch.stop()\ntime.sleep(4)",
}


def said(code):
    """Whether a process that runs this was noticed, below a parent of its own."""
    program = WATCHED.format(code=textwrap.dedent(code))
    parent = f"import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-c', {program!r}]))"
    command = [sys.executable, "-c", parent]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_waiting_for_nothing_is_noticed():
    """Although the watch itself reads, and whatever else this host does."""
    assert said(WAITS) == "rang"


@pytest.mark.parametrize("what", WORKS)
def test_work_is_no_stall(what):
    """By processor time, or by what is read and written; in the process, a thread, or a child with a session."""
    assert said(WORKS[what]) == "silent"
