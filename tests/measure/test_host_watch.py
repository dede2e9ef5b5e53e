"""Clocks and stolen processor time, on clocks and figures of the test's own."""

from types import SimpleNamespace

import pytest

from grader_service.measure.host_watch import ClockWatch, StealWatch, Together
from grader_service.measure.reference_run import others_share
from tests.measure.scripted_host import ScriptedHost


class Clocks:
    """A host's three clocks, moved by hand."""

    def __init__(self):
        self.wall, self.monotonic, self.boot = 1_800_000_000.0, 500.0, 700.0
        self.watch = ClockWatch(lambda: self.wall, lambda: self.monotonic, lambda: self.boot)

    def pass_time(self, seconds):
        self.wall += seconds
        self.monotonic += seconds
        self.boot += seconds

    def sleep(self, seconds):
        self.wall += seconds
        self.boot += seconds


@pytest.fixture
def clocks():
    """Watched from the beginning of a block."""
    made = Clocks()
    made.watch.begin()
    return made


@pytest.mark.parametrize(
    ("step", "contaminates"), [(0.051, True), (-0.051, True), (-3600.0, True), (0.049, False), (0.0, False)]
)
def test_a_step_of_the_wall_clock_contaminates(clocks, step, contaminates):
    """Either way, from 50 ms on; slewing stays far below that."""
    clocks.pass_time(4.0)
    clocks.wall += step
    assert (clocks.watch.contamination() is not None) == contaminates


def test_a_sleeping_host_contaminates_and_is_named_as_such(clocks):
    """The wall clock moves too, but that is not what happened."""
    clocks.pass_time(4.0)
    clocks.sleep(30.0)
    assert clocks.watch.contamination() == "the host slept for 30.0 s"


def test_a_step_between_blocks_contaminates_neither(clocks):
    """Only what happens in a block counts for it."""
    clocks.pass_time(1.0)
    assert clocks.watch.contamination() is None
    clocks.wall += 5.0
    clocks.watch.begin()
    clocks.pass_time(1.0)
    assert clocks.watch.contamination() is None


def stat(*rows):
    """`/proc/stat` with (busy, idle, steal) ticks for each processor."""
    lines = [f"cpu{number} {busy} 0 0 {idle} 0 0 0 {steal} 0 0" for number, (busy, idle, steal) in enumerate(rows)]
    return "\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "intr 5 1 2", ""])


@pytest.mark.parametrize(
    ("after", "contaminates"),
    [
        ([(400, 0, 0), (400, 0, 0)], False),
        ([(360, 0, 39), (0, 400, 0)], False),
        ([(360, 0, 41), (0, 400, 0)], True),
        ([(200, 0, 0), (200, 0, 200)], True),
        ([(10, 390, 10), (0, 400, 0)], False),
        ([*[(100, 0, 0)] * 10, (100, 0, 300)], False),
    ],
    ids=["none", "below", "above", "one core", "idle", "another core"],
)
def test_stolen_time_is_a_share_of_what_was_wanted(after, contaminates):
    """Idle time hides nothing, and a few ticks on an idle host are noise.

    What is stolen from processors of others is not ours to mind; names such as cpu1 and cpu10 are told apart.
    """
    texts = iter([stat(*[(0, 0, 0)] * len(after)), stat(*after)])
    watch = StealWatch((0, 1), lambda: next(texts))
    watch.begin()
    assert (watch.contamination() is not None) == contaminates


@pytest.mark.parametrize(
    ("after", "share"),
    [
        ([(0, 50, 0), (0, 50, 0), (50, 0, 0)], 0.0),
        ([(50, 0, 0), (0, 50, 0), (0, 50, 0)], 0.5),
        ([(5, 20, 0), (0, 20, 5), (0, 50, 0)], 0.1),
        ([(0, 0, 0), (0, 0, 0), (0, 0, 0)], 0.0),
    ],
    ids=["elsewhere", "one of two", "stolen is not used", "no tick yet"],
)
def test_what_others_use_is_told_while_the_pod_is_frozen(after, share):
    """Of the pod's processors only; and the pod goes on afterwards."""
    texts = iter([stat(*[(0, 0, 0)] * 3), stat(*after)])
    calls = []
    pod = SimpleNamespace(pause=lambda: calls.append("pause"), resume=lambda: calls.append("resume"))
    assert others_share(pod, (0, 1), lambda: next(texts)) == pytest.approx(share)
    assert calls == ["pause", "resume"]


@pytest.mark.parametrize("watch", [ClockWatch(), StealWatch((0,))], ids=["clocks", "stolen time"])
def test_this_hosts_figures_can_be_read(watch):
    """The clocks asked by default exist and agree, and the real `/proc/stat` has the columns that are read."""
    watch.begin()
    assert watch.contamination() is None


def test_every_watch_is_asked_and_the_first_reason_stands():
    """A reason hides no other watch's question, which may have something to clear."""
    asked = []

    class Asked(ScriptedHost):
        def contamination(self):
            asked.append(self.reasons)
            return super().contamination()

    watch = Together([Together(()), Asked(("first",)), Asked(("second",))])
    watch.begin()
    assert watch.contamination() == "first"
    assert asked == [("first",), ("second",)]
