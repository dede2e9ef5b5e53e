"""What is told of the learner's code while it runs, and that nobody waits for the telling."""

import threading
import time

import pytest

from grader_service.run import live
from grader_service.run.live import last_line, watched
from grader_service.run.progress import Silent
from grader_service.run.scrubbing import Scrubber
from sandbox.api import GuestPaths
from tests.sandbox.owner import LIMITS, ask, drill
from tests.waiting import wait_for

PATHS = GuestPaths(
    "/run/x/workspace", "/run/x/tmp", "/run/x/shm", "/run/x/submission", "/run/x/shards", "/run/x/lab-data"
)


class Heard:
    """Keeps what it is told of a stage that goes on."""

    def __init__(self, during=lambda: None):
        self.told = []
        self._during = during

    def stage(self, name, *, key="", limit_s=None):
        raise AssertionError("no stage begins here")

    note = stage

    def running(self, elapsed_s, limit_s, line):
        self.told.append((elapsed_s, limit_s, line))
        self._during()


class Printing:
    """Stands for a pod that has printed this, or whose engine does not say what."""

    def __init__(self, text="", waits_for=None):
        self.asked = 0
        self._text = text
        self._waits_for = waits_for

    def output(self):
        self.asked += 1
        if self._waits_for is not None:
            self._waits_for.wait(60)
        return self._text


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """It is looked every moment."""
    monkeypatch.setattr(live, "EVERY_S", 0.02)


@pytest.mark.integration
def test_what_the_code_printed_last_is_heard(forked_runner):
    """With the time so far, while another thread waits for the pod; folders by the names that learners know."""
    heard = Heard()
    with forked_runner.open_run("run-live", LIMITS) as space:
        pod = space.start(drill())
        ask(pod, kind="echo", value=1)
        with watched(pod, Scrubber(space.paths), heard, 900.0):
            ask(pod, kind="say", text="first\nsecond", stream="stdout")
            wait_for(lambda: heard.told and heard.told[-1][2] == "second", 10)
            ask(pod, kind="say", text=f"3%\r{space.paths.workspace}/a.jpg \x1b[2J\n\n", stream="stderr")
            wait_for(lambda: heard.told[-1][2] == "/workspace/a.jpg \ufffd[2J", 10)
    times = [elapsed for elapsed, _, _ in heard.told]
    assert times == sorted(times)
    assert {limit for _, limit, _ in heard.told} == {900.0}


def test_nothing_is_told_once_the_block_has_ended():
    """Or the line of the next stage would be that of the one before."""
    heard = Heard()
    with watched(Printing("x"), Scrubber(PATHS), heard, 9.0):
        wait_for(lambda: heard.told, 5, 0.01)
    told = len(heard.told)
    time.sleep(0.2)
    assert len(heard.told) == told


def test_an_engine_that_hangs_holds_nothing_up():
    """The block goes on, ends, and raises what it raises."""
    hangs, heard = threading.Event(), Heard()
    pod = Printing("x", hangs)
    started = time.monotonic()
    with pytest.raises(ValueError, match="the block's"), watched(pod, Scrubber(PATHS), heard, 9.0):
        wait_for(lambda: pod.asked, 5, 0.01)
        raise ValueError("the block's")
    assert time.monotonic() - started < 5
    hangs.set()
    time.sleep(0.1)
    assert (pod.asked, heard.told) == (1, [])


def test_whoever_is_told_may_fail():
    """A terminal that was closed ends no grading."""

    def closed():
        raise BrokenPipeError

    heard = Heard(closed)
    with watched(Printing("x"), Scrubber(PATHS), heard, 9.0):
        wait_for(lambda: heard.told, 5, 0.01)
        time.sleep(0.1)
    assert len(heard.told) == 1


def test_where_nobody_listens_nobody_looks():
    """Most runs of a service: no engine is asked for nothing."""
    pod = Printing("x")
    with watched(pod, Scrubber(PATHS), Silent(), 9.0):
        time.sleep(0.1)
    assert pod.asked == 0


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n", "two"),
        ("one\n  two\t three \n\n \t\n", "two three"),
        ("one\nunfinished", "unfinished"),
        ("a" * 100, "a" * 100),
        ("a" * 101, "a" * 99 + "…"),
    ],
)
def test_the_last_line(written, line):
    """Is the last one with something in it, and short."""
    assert last_line(written) == line
