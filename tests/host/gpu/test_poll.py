"""The sampler sees what lasts shorter than anybody's question, and lets go of the GPU at its end."""

import threading
import time

import pytest

from grader_service.host.gpu.monitor import GpuGone
from grader_service.host.gpu.poll import GpuPoll
from tests.host.gpu.memory import InMemoryGpu
from tests.waiting import wait_for


def test_a_process_that_came_and_went_is_seen():
    """It had a context for a moment only, and is named with what it belonged to then."""
    gpu = InMemoryGpu()
    with GpuPoll(gpu, every_s=0.002, home=lambda pid: f"pod of {pid}") as poll:
        started = time.monotonic()
        gpu.processes = [77]
        wait_for(lambda: any(sample.homes for sample in poll.between(started, time.monotonic())), 2.0, 0.005)
        gpu.processes = []
        left = time.monotonic()
        wait_for(lambda: len(poll.between(left + 0.01, time.monotonic())) > 2, 2.0, 0.005)
    homes = [dict(sample.homes) for sample in poll.between(started, time.monotonic())]
    assert {77: "pod of 77"} in homes
    assert homes[-1] == {}


def test_only_the_time_asked_for_is_given():
    """Samples of before and after a window stay out of it."""
    gpu = InMemoryGpu()
    with GpuPoll(gpu, every_s=60) as poll:
        poll.look()
        start = time.monotonic()
        gpu.sm_percent = 40.0
        poll.look()
        end = time.monotonic()
        poll.look()
    assert [sample.use.sm_percent for sample in poll.between(start, end)] == [40.0]
    assert len(poll.between(0.0, time.monotonic())) == 3


def test_a_gpu_that_is_gone_for_a_moment_does_not_end_the_sampling():
    """Who asks himself is told; the thread goes on."""
    gpu = InMemoryGpu()
    with GpuPoll(gpu, every_s=0.002) as poll:
        gpu.gone = True
        with pytest.raises(GpuGone):
            poll.look()
        time.sleep(0.02)
        gpu.gone = False
        back = time.monotonic()
        wait_for(lambda: poll.between(back, time.monotonic()), 2.0, 0.005)


def test_the_end_stops_the_thread_and_closes_the_monitor():
    """Nothing is sampled any more, and nobody holds the driver."""
    closed = threading.Event()

    class Closing(InMemoryGpu):
        def close(self):
            closed.set()

    with GpuPoll(Closing(), every_s=0.002) as poll:
        pass
    assert closed.is_set()
    ended = time.monotonic()
    time.sleep(0.02)
    assert poll.between(ended, time.monotonic()) == []
