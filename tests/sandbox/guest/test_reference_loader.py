"""Workers of a reference loader run within its windows alone, and end with the process that they belong to."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.measure.test_comparison import FAIR
from tests.sandbox.guest.processes import state
from tests.sandbox.guest.test_own_graph import a_plan
from tests.waiting import wait_for

pytestmark = pytest.mark.integration

PLAN = a_plan(steps=[{"op": "resize", "size": [40]}, {"op": "crop", "size": [30, 20]}], mirror=False)
WORKERS = 2
SENDS_S = 0.2
PATIENCE_S = 15.0
SETTINGS = FAIR.model_copy(update={"batch_size": 4, "num_workers": WORKERS}).model_dump()


def stopped(pids):
    return all(state(pid) == "T" for pid in pids)


def awake(pids):
    return all(state(pid) not in (None, "T") for pid in pids)


def a_loader(files, **settings):
    from sandbox.guest.trusted import reference

    return reference.batches(files, PLAN, SETTINGS | settings, "cpu")


class Host:
    """A link whose host asks for what is written down, and looks at the workers when it hears something."""

    def __init__(self, *requests):
        self._requests = iter(requests)
        self.heard = []
        self.workers = {}

    def receive(self):
        """The next request; what there is of workers stands still by now."""
        self.heard.append(wait_for(lambda: stopped(pid for pids in self.workers.values() for pid in pids), PATIENCE_S))
        return next(self._requests, {"kind": "end"})

    def send(self, kind, blob=b"", **body):
        """An answer: at a mark exactly the workers of one loader run; sending it takes a while, which counts."""
        self.heard.append(kind)
        if kind == "window_done":
            assert body["seconds"] >= SENDS_S
        if kind == "prepared":
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            known = {pid for pids in self.workers.values() for pid in pids}
            self.workers[len(self.workers)] = {int(pid) for pid in children} - known
        if kind == "mark":
            self.heard.append([number for number, pids in self.workers.items() if awake(pids)])
            time.sleep(SENDS_S)


def prepare(name, files):
    return {"kind": "prepare", "name": name, "files": files, "plan": PLAN, "settings": SETTINGS, "device": "cpu"}


def draw(kind, name):
    return {"kind": kind, "name": name, "discard": 4, "batches": 3}


def test_of_two_loaders_the_workers_of_one_run(lab_child, held_out):
    """Between two requests all of them stand still; windows and deliveries alike."""

    def talk():
        from sandbox.guest.trusted import reference

        host = Host(
            prepare("a", held_out), prepare("b", held_out), draw("window", "a"), draw("window", "b"),
            draw("deliver", "a"), draw("window", "a"),
        )  # fmt: skip
        reference.run(host)
        return host.heard, [len(pids) for pids in host.workers.values()]

    heard, workers = lab_child(talk)
    assert workers == [WORKERS, WORKERS]
    window = ["mark", [0], "window_done", True]
    assert heard[:5] == ["ready", True, "prepared", True, "prepared"]
    assert heard[5:] == [
        True, *window, "mark", [1], "window_done", True, "mark", [0], *["images"] * 3, "delivered", True, *window
    ]  # fmt: skip


def test_workers_stop_and_go_on(lab_child, held_out):
    """Batches keep coming, longer than torch waits before it looks for dead workers; a loader without any is fine."""

    def rounds():
        loader, seen = a_loader(held_out), []
        for pause_s in (0.0, 6.0, 0.0):
            with loader.running():
                shapes = [list(next(loader).shape) for _ in range(8)]
                seen.append((wait_for(lambda: awake(loader._workers), PATIENCE_S), shapes == [[4, 3, 32, 24]] * 8))
            seen.append(wait_for(lambda: stopped(loader._workers), PATIENCE_S))
            time.sleep(pause_s)
        plain = a_loader(held_out, num_workers=0, prefetch_factor=None)
        with plain.running():
            seen.append(list(next(plain).shape))
        return seen

    assert lab_child(rounds) == [[True, True], True] * 3 + [[4, 3, 32, 24]]


def test_a_process_that_is_killed_leaves_no_worker_behind(lab_child, held_out):
    """One that is stopped never looks whether its parent is there."""

    def kill():
        read_end, write_end = os.pipe()
        owner = os.fork()
        if owner == 0:
            loader = a_loader(held_out)
            with loader.running():
                for _ in range(WORKERS):
                    next(loader)
            os.write(write_end, " ".join(map(str, loader._workers)).encode())
            while True:  # children that stop wake it up
                signal.pause()
        workers = [int(pid) for pid in os.read(read_end, 1000).split()]
        were_stopped = wait_for(lambda: stopped(workers), PATIENCE_S)
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)
        ended = wait_for(lambda: not any(state(pid) for pid in workers), PATIENCE_S)
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(workers), were_stopped, ended

    assert lab_child(kill) == [WORKERS, True, True]


def test_a_process_that_fails_ends_without_waiting_for_workers(lab, held_out):
    """On an error the interpreter waits for its children, which have to be running for that."""
    script = f"""
from sandbox.guest.trusted import reference
loader = reference.batches({held_out}, {PLAN}, {SETTINGS}, "cpu")
with loader.running():
    next(loader)
raise SystemExit(7)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60.0, check=False).returncode == 7
