"""Where a mark is sent or heard late, the host does not take an arm for a hundred times faster than it is."""

from types import SimpleNamespace

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.measure import arms
from grader_service.measure.arms import Asked, LearnerArm, LoaderReady, Pace, ReferenceArm, timed_window
from grader_service.model.discovery import LoaderFacts
from grader_service.model.measurement import Arm, LoaderSettings, Window
from sandbox.frames import Message
from tests.hand_clock import HandClock

TOOK_S = 0.1
AT_ONCE_S = 1e-4
IMAGES = 64


@pytest.fixture
def clock(monkeypatch):
    """The host's clock, which goes on only while the host waits for a mark."""
    made = HandClock()
    monkeypatch.setattr(arms, "time", SimpleNamespace(monotonic=made))
    return made


class BusyHost:
    """A pod whose windows take `TOOK_S`, on a host that sleeps through the first mark of some of them.

    In those that are `FULL` the pod slept before it sent the mark: its queue is full again, as its own clock says, too.
    """

    FULL = "full"

    def __init__(self, clock, *late):
        self._clock = clock
        self._late = list(late)
        self._next = iter(())
        self.windows = 0

    def send(self, body, blob=b"", *, timeout_s):
        """A request for a window."""
        late = self._late[self.windows] if self.windows < len(self._late) else False
        self.windows += 1
        done = {"kind": "window_done", "images": IMAGES, "seconds": AT_ONCE_S if late == self.FULL else TOOK_S}
        waits = (TOOK_S, AT_ONCE_S) if late else (AT_ONCE_S, TOOK_S)
        self._next = iter(zip(waits, ({"kind": "mark"}, done), strict=True))

    def receive(self, timeout_s):
        """The next of its two marks, as late as the host looks at it."""
        wait_s, body = next(self._next)
        self._clock.now += wait_s
        return Message(body, b"")

    def pause(self):
        """Nothing runs."""

    resume = pause


@pytest.mark.parametrize("late", [True, BusyHost.FULL])
def test_a_window_whose_first_mark_came_late_is_asked_for_again(clock, late):
    """What counts is the next one, by the host's own clock."""
    pod = BusyHost(clock, late, late)
    pace = Pace(burst=1)
    window = timed_window(pod, Arm.DALI, Asked(4, 0), 30.0, pace, ours=True)
    assert isinstance(window, Window)
    assert window.seconds == pytest.approx(TOOK_S, rel=0.01)
    assert pod.windows == 3
    assert pace.batches_per_s == pytest.approx(4 / TOOK_S, rel=0.01)


@pytest.mark.parametrize("late", [True, BusyHost.FULL])
def test_a_reference_is_never_taken_for_faster_than_it_is(clock, late):
    """Its rate is what a learner is measured against."""
    pod = BusyHost(clock, late)
    settings = LoaderSettings.model_construct(num_workers=0, batch_size=16)
    arm = ReferenceArm(pod, Arm.FAIR, settings, queue_depth=0)
    assert arm.window(4, timeout_s=30.0).images_per_s == pytest.approx(IMAGES / TOOK_S, rel=0.01)


def test_a_host_that_is_always_late_is_our_failure(clock, monkeypatch):
    """Which costs nobody an attempt."""
    monkeypatch.setattr(arms, "_BUSY_S", 0.5)
    with pytest.raises(SandboxUnavailable, match="too busy to time the dali arm"):
        timed_window(BusyHost(clock, *[True] * 99), Arm.DALI, Asked(4, 0), 30.0, Pace(burst=1), ours=True)


def test_what_was_ready_before_the_request_is_no_reason_to_ask_again(clock):
    """It is drawn before the mark, so that the window seems slower than all that was drawn, not faster."""
    pod = BusyHost(clock)
    window = timed_window(pod, Arm.DALI, Asked(4, 400), 30.0, Pace(burst=1), ours=True)
    assert pod.windows == 1
    assert window.seconds == pytest.approx(TOOK_S, rel=0.01)


def test_a_learners_pod_is_not_believed_and_not_taken_for_much_too_fast(clock):
    """What it says of its own time changes nothing; all that was drawn since the request bounds its rate."""
    pod = BusyHost(clock, True)
    facts = LoaderReady.model_construct(loader=LoaderFacts.model_construct(num_workers=0), queue_depth=0)
    window = LearnerArm(pod, facts).window(4, timeout_s=30.0)
    assert pod.windows == 1
    assert window.seconds == pytest.approx(TOOK_S, rel=0.01)
