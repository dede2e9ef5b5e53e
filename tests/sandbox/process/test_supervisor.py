"""The program that keeps a guest's processes together: every one of them is found, frozen, counted and killed."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from sandbox.process import supervisor
from tests.sandbox.guest.processes import state
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

PROGRAM = Path(supervisor.__file__)
soon = partial(wait_for, timeout_s=2.5, every_s=0.02)
DAEMON = """
import os, signal, sys, time
for _ in range({count}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            {work}
        os._exit(0)
    os.wait()
open({ready!r}, "w").close()
time.sleep({seconds})
"""
"""Leaves daemons behind; `ready` is there when each of them runs and what started it is gone."""


class Supervised:
    """A supervisor and its guest, a Python program."""

    def __init__(self, program, memory_mib=1000):
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), str(memory_mib), sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.seen = set()
        self.acknowledged()

    def acknowledged(self):
        assert self.process.stdout.read(1) == b"\n"

    def order(self, letter):
        self.process.stdin.write(letter)
        self.acknowledged()

    def written(self):
        """What it says was written so far."""
        self.process.stdin.write(b"o")
        return json.loads(self.process.stdout.readline())

    def tree(self):
        """Every process below the supervisor, the dead ones too; remembered for the end."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        self.seen.update(found)
        return found

    def living(self):
        return running(self.tree())

    def end(self):
        """Orders the end; returns the report."""
        output, _ = self.process.communicate(b"k", timeout=30)
        return json.loads(output)

    def survivors(self):
        """Of the processes that were seen, those that still run."""
        return running(self.seen)


def running(processes):
    """Those of them that are neither gone nor dead."""
    return [process for process in processes if state(process.pid)]


@pytest.fixture
def supervise():
    """Starts supervised programs; kills what a failed test left."""
    made = []

    def start(*args, **options):
        made.append(Supervised(*args, **options))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.tree()
            one.process.kill()
        one.process.wait()
        one.process.stdin.close()
        one.process.stdout.close()
        for process in one.survivors():
            process.kill()


@pytest.fixture
def ready(tmp_path):
    """The file of `DAEMON`."""
    return tmp_path / "ready"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", 0),
        ("import sys; sys.exit(7)", 7),
        ("import os; os._exit(255)", 255),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("raise ValueError", 1),
    ],
)
def test_an_exit_is_reported(supervise, program, code):
    """With its code or signal, when it is asked for."""
    one = supervise(program)
    soon(lambda: not one.tree())
    report = one.end()
    assert (report["exit_code"], report["out_of_memory"]) == (code, False)
    assert one.process.returncode == 0


def test_the_end_of_the_log_is_kept(supervise):
    """Both streams, the last 64 KiB, whatever bytes they are."""
    one = supervise(
        "import os\nfor _ in range(200): os.write(1, b'x' * 10000)\nos.write(2, b'\\xff\\x00the end')\n",
    )
    soon(lambda: not one.tree())
    tail = one.end()["log_tail"]
    assert tail.endswith("\ufffd\x00the end")
    assert 60_000 < len(tail) <= supervisor.LOG_BYTES


def test_children_end_with_the_guest(supervise, ready, tmp_path):
    """Daemons too, although nobody asked for the end yet."""
    seen = tmp_path / "seen"
    waiting = f"while not os.path.exists({str(seen)!r}): time.sleep(0.01)\n"
    one = supervise(DAEMON.format(count=3, work="time.sleep(1000)", ready=str(ready), seconds=0) + waiting)
    soon(lambda: ready.exists() and len(one.living()) == 4)
    seen.touch()
    soon(lambda: not one.tree())
    assert one.survivors() == []
    assert one.end()["exit_code"] == 0


@pytest.mark.parametrize(
    ("count", "how"), [(5, "order"), (5, "end of file"), (5, "unknown order"), pytest.param(300, "order", id="many")]
)
def test_every_process_is_killed(supervise, ready, count, how):
    """Daemons in sessions of their own, deaf to signals; by an order, or because the grader is gone."""
    one = supervise(DAEMON.format(count=count, work="time.sleep(1000)", ready=str(ready), seconds=1000))
    soon(lambda: ready.exists() and len(one.living()) == count + 1)
    if how == "end of file":
        one.process.stdin.close()
        one.process.wait(timeout=20)
    else:
        one.process.communicate(b"k" if how == "order" else b"?", timeout=20)
    assert one.survivors() == []


def test_a_storm_of_processes_is_killed(supervise):
    """Processes that fork and leave all the time are never there when they are looked for; their groups are."""
    one = supervise(
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        while True:\n"
        "            if os.fork(): os._exit(0)\n"
        "time.sleep(1000)\n"
    )
    soon(lambda: (found := session_below(one)) is not None and len(in_session(found)) >= 3)
    session = session_below(one)
    started = time.monotonic()
    report = one.end()
    assert time.monotonic() - started < 25
    assert report["exit_code"] == -signal.SIGKILL
    assert in_session(session) == []


def session_below(one):
    """The one that the guest was started in; None while it starts. Its children may have lower numbers than it has."""
    for child in psutil.Process(one.process.pid).children():
        with contextlib.suppress(ProcessLookupError):
            if (session := os.getsid(child.pid)) != os.getsid(one.process.pid):
                return session
    return None


def in_session(session):
    """Processes of this session, wherever they are in the tree by now."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) == session:
                found.append(pid)
    return found


def test_orphans_that_ended_are_collected(supervise, ready):
    """A long run with many short-lived daemons does not fill the table of processes with dead ones."""
    one = supervise(DAEMON.format(count=40, work="os._exit(0)", ready=str(ready), seconds=1000))
    soon(lambda: ready.exists() and len(one.tree()) == 1)
    one.end()


def test_pause_freezes_all_and_resume_thaws_all(supervise, ready):
    """Daemons and children alike; the answer comes when it is done."""
    work = "\n            while True: time.sleep(0.01)"
    one = supervise(DAEMON.format(count=3, work=work, ready=str(ready), seconds=1000))
    soon(lambda: ready.exists() and len(one.living()) == 4)
    one.order(b"p")
    assert {state(process.pid) for process in one.tree()} == {"T"}
    one.order(b"r")
    assert "T" not in {state(process.pid) for process in one.tree()}
    one.order(b"p")
    one.end()
    assert one.survivors() == []


GROWING = "x = []\nwhile True: x.append(bytearray(b'1' * (8 << 20)))\n"
FLOODING = (
    "import os, threading, time\n"
    "def flood():\n    while True: os.write(1, b'x' * 4096)\n"
    "for _ in range(2): threading.Thread(target=flood, daemon=True).start()\n"
    "x = []\n"
    "while len(x) < 40: x.append(bytearray(b'1' * (8 << 20))); time.sleep(0.05)\n"
    "time.sleep(1000)\n"
)
"""Memory is watched by the clock, not when there is nothing else to do."""
FOUR_CHILDREN = (
    "import os, time\n"
    "for _ in range(4):\n    if os.fork() == 0:\n        x = bytearray(b'1' * (60 << 20)); time.sleep(1000)\n"
    "time.sleep(1000)\n"
)
"""With 60 MiB each they have 240."""


@pytest.mark.parametrize(
    ("program", "memory_mib"),
    [(GROWING, 120), (FLOODING, 120), (FOUR_CHILDREN, 150)],
    ids=["growing", "flooding", "four children"],
)
def test_too_much_memory(supervise, program, memory_mib):
    """Is reported, and the tree is killed without being asked: alone, behind a flood of output, or of all together."""
    one = supervise(program, memory_mib=memory_mib)
    soon(lambda: not one.tree(), timeout_s=5.0)
    report = one.end()
    assert (report["out_of_memory"], report["exit_code"]) == (True, -signal.SIGKILL)


def test_memory_that_a_fork_shares_counts_once(supervise):
    """Ten loader workers of a process with 80 MiB have 80 MiB, not 880."""
    one = supervise(
        "import os, time\nx = bytearray(b'1' * (80 << 20))\n"
        "for _ in range(10):\n    if os.fork() == 0: time.sleep(1000)\n"
        "time.sleep(1000)\n",
        memory_mib=250,
    )
    soon(lambda: len(one.living()) == 11)
    time.sleep(1.0)
    assert len(one.living()) == 11
    assert one.end()["out_of_memory"] is False


def test_the_watch_costs_little(supervise):
    """What is measured beside it gets its processors: at most a few hundredths of one."""
    one = supervise("import time; time.sleep(1000)")
    before = psutil.Process(one.process.pid).cpu_times()
    time.sleep(1.5)
    after = psutil.Process(one.process.pid).cpu_times()
    assert (after.user + after.system) - (before.user + before.system) < 0.15
    one.end()


def test_what_was_written_is_told_while_it_runs(supervise, ready):
    """The last 64 KiB of it, whatever it is, on a line; and again, with what came since."""
    one = supervise(
        "import os, time\n"
        "print('a\\nb', flush=True)\n"
        f"while not os.path.exists({str(ready)!r}): time.sleep(0.01)\n"
        "print('c' * 200_000, flush=True)\n"
        "time.sleep(60)"
    )
    soon(lambda: one.written() == "a\nb\n")
    one.order(b"p")
    assert one.written() == "a\nb\n"
    one.order(b"r")
    ready.touch()
    soon(lambda: one.written() == "c" * ((64 << 10) - 1) + "\n")
    assert one.end()["log_tail"].endswith("c\n")
