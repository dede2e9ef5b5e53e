"""How a pod's end is named, with a real socket and a real process behind it."""

import contextlib
import signal
import subprocess
import threading
import time

import pytest

from grader_service.errors import SandboxUnavailable
from sandbox import pod as pod_module
from sandbox.api import Ending, PodRole, PodSpec
from sandbox.endpoint import Endpoint
from sandbox.frames import FrameLimits, encode
from sandbox.pod import ConnectedPod, ContainerEnd
from tests.sandbox.guest.processes import state
from tests.sandbox.test_endpoint import dial as dial_into
from tests.store.threads import at_once
from tests.waiting import wait_for

SPEC = PodSpec(role=PodRole.LEARNER, program="drill", memory_mib=100, pids=10, cpus=(0,))


class SleepHandle:
    """A process that only sleeps."""

    def __init__(self, *, log="", out_of_memory=False, failures=0, writes=lambda: ""):
        self.output = writes
        self.process = subprocess.Popen(["sleep", "1000"])
        self.destroyed = 0
        self._end = (out_of_memory, log)
        self._failures = failures

    def alive(self):
        return self.process.poll() is None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def destroy(self):
        self.destroyed += 1
        if self.destroyed <= self._failures:
            raise SandboxUnavailable("the engine hiccups")
        self.process.kill()
        return ContainerEnd(self.process.wait(), *self._end)


@pytest.fixture
def make(tmp_path):
    """Makes a pod on a sleeping process; ends what is left."""
    handles = []

    def build(**options):
        handles.append(SleepHandle(**options))
        return ConnectedPod(SPEC, handles[-1], Endpoint(tmp_path, FrameLimits())), handles[-1]

    yield build
    for handle in handles:
        handle.process.kill()
        handle.process.wait()


@pytest.fixture
def dial(tmp_path):
    """Connects as the guest does."""
    with contextlib.ExitStack() as guests:
        yield lambda: guests.enter_context(dial_into(tmp_path))


def test_a_conversation_and_a_good_end(make, dial):
    """The first message connects; ending is COMPLETED, with the wall time and what the process said."""
    pod, handle = make(log="hello")
    guest = dial()
    assert pod.send({"kind": "a"}) is None
    guest.sendall(encode({"kind": "b"}, b"blob"))
    assert pod.receive(5).blob == b"blob"
    record = pod.end()
    assert (record.ending, record.exit_code, record.log_tail) == (Ending.COMPLETED, -9, "hello")
    assert 0 < record.wall_s < 30
    assert handle.process.returncode == -9


def test_a_closed_connection_is_exited(make, dial):
    """And the process is killed, even if it lives on without its connection."""
    pod, handle = make()
    guest = dial()
    assert pod.send({"kind": "a"}) is None
    guest.close()
    assert pod.receive(5) is Ending.EXITED
    assert handle.process.returncode == -9
    assert "closed its connection" in pod.end().detail


def test_a_missed_deadline_is_timed_out(make, dial):
    """With the time that it had."""
    pod, handle = make()
    dial()
    assert pod.receive(0.2) is Ending.TIMED_OUT
    assert handle.process.returncode == -9
    assert "no message within 0.2 s" in pod.end().detail


@pytest.mark.parametrize("sent", [b"\xff" * 8, encode({"a": 1})[:-1] + b"!", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_bad_frame_is_a_protocol_violation(make, dial, sent):
    """The reason stands in the record."""
    pod, _ = make()
    dial().sendall(sent)
    assert pod.receive(5) is Ending.PROTOCOL_VIOLATION
    assert pod.end().detail


def test_a_bad_message_is_a_protocol_violation(make, dial):
    """Valid JSON that is no message is refused by whoever understands messages."""
    pod, handle = make()
    dial().sendall(encode({"kind": "nonsense"}))
    pod.receive(5)
    assert pod.reject("message 'nonsense'") is Ending.PROTOCOL_VIOLATION
    assert pod.end().detail == "message 'nonsense'"
    assert handle.process.returncode == -9


@pytest.mark.parametrize(
    ("last_words", "ending"), [(b"", Ending.OUT_OF_MEMORY), (b"\xff" * 8, Ending.PROTOCOL_VIOLATION)]
)
def test_out_of_memory_explains_an_exit_and_excuses_no_violation(make, dial, last_words, ending):
    """A process that the kernel killed did not exit by itself; beside a violation a child may have been killed."""
    pod, _ = make(out_of_memory=True)
    guest = dial()
    guest.sendall(last_words)
    guest.close()
    assert pod.receive(5) is ending
    assert pod.end().oom_killed


def test_after_its_end_a_pod_only_repeats_it(make, dial):
    """Nothing is sent, waited for, frozen or destroyed again."""
    pod, handle = make()
    dial()
    assert pod.receive(0.1) is Ending.TIMED_OUT
    record = pod.end()
    assert pod.end() == record
    assert pod.receive(5) is Ending.TIMED_OUT
    assert pod.send({"kind": "a"}) is Ending.TIMED_OUT
    assert pod.reject("why") is Ending.TIMED_OUT
    pod.pause()
    pod.resume()
    assert handle.destroyed == 1


def test_pause_and_resume(make, dial):
    """Reach the process while the pod lives; a signal takes effect when it is delivered."""
    pod, handle = make()
    dial()
    pod.pause()
    wait_for(lambda: state(handle.process.pid) == "T", 2.5, 0.01)
    pod.resume()
    wait_for(lambda: state(handle.process.pid) in {"R", "S", "D"}, 2.5, 0.01)
    pod.pause()
    assert pod.end().ending is Ending.COMPLETED


def test_a_guest_that_ends_before_it_connects_is_our_failure(make):
    """Nothing of the learner's ran by then: the error has the exit code and the log for the operator."""
    pod, handle = make(log="ModuleNotFoundError: no module named grader_guest")
    handle.process.kill()
    with pytest.raises(SandboxUnavailable, match=r"never connected \(exited, exit code -9\).*ModuleNotFoundError"):
        pod.receive(30)
    assert handle.destroyed == 1
    assert pod.receive(30) is Ending.EXITED


def test_a_guest_that_never_connects_is_our_failure(make, monkeypatch):
    """A host that is too busy to start an interpreter is not the learner's doing."""
    monkeypatch.setattr(pod_module, "CONNECT_S", 0.3)
    pod, handle = make()
    with pytest.raises(SandboxUnavailable, match=r"learner pod never connected \(timed_out"):
        pod.send({"kind": "a"})
    assert handle.process.returncode == -9


def test_a_pod_whose_end_failed_can_be_ended_again(make, dial):
    """An engine that hiccups at the wrong moment leaves no running process behind."""
    pod, handle = make(failures=1)
    dial().close()
    with pytest.raises(SandboxUnavailable, match="hiccups"):
        pod.receive(5)
    assert handle.alive()
    assert pod.end().ending is Ending.COMPLETED
    assert handle.process.returncode == -9


def test_what_a_process_wrote_is_made_safe_to_show(make, dial):
    """Terminal codes and bidirectional overrides are replaced, and only the last 8000 characters kept."""
    pod, _ = make(log="x" * 9000 + "\x1b[31m\u202eevil\x00\nline")
    dial()
    tail = pod.end().log_tail
    assert tail.endswith("\ufffd[31m\ufffdevil\ufffd\nline")
    assert len(tail) == 8000


def test_what_a_process_writes_can_be_read(make, dial):
    """While it runs, safe to show; after its end what the record has, and nothing where the engine cannot tell."""

    def fails():
        raise SandboxUnavailable("the engine hiccups")

    pod, handle = make(log="all of it", writes=lambda: "x" * 9000 + "10%\r20%\r\n\x1b")
    dial()
    assert pod.output().endswith("x10%\n20%\n\ufffd")
    assert len(pod.output()) <= 8000
    handle.output = fails
    assert pod.output() == ""
    pod.end()
    assert pod.output() == "all of it"


def test_an_engine_that_does_not_say_what_was_written_can_still_end_it(make, dial):
    """At its deadline, while another thread waits for the engine; that thread gets the record's then, or nothing."""
    hangs, seen = threading.Event(), []

    def writes():
        hangs.wait(60)
        raise SandboxUnavailable("the engine hung")

    pod, handle = make(log="the end", writes=writes)
    dial()
    reading = threading.Thread(target=lambda: seen.append(pod.output()))
    reading.start()
    started = time.monotonic()
    assert pod.receive(0.2) is Ending.TIMED_OUT
    assert time.monotonic() - started < 20
    assert handle.destroyed == 1
    assert reading.is_alive()
    hangs.set()
    reading.join(10)
    assert seen == ["the end"]


def test_a_message_may_come_while_the_deadline_is_checked(make, dial):
    """A guest that answers late, but in time, is heard."""
    pod, _ = make()
    guest = dial()
    timer = threading.Timer(0.5, guest.sendall, [encode({"kind": "late"})])
    timer.start()
    assert pod.receive(10).body == {"kind": "late"}
    timer.join()


@pytest.mark.parametrize("connected", [True, False], ids=["connected", "not yet connected"])
def test_another_thread_may_end_it(make, dial, connected):
    """Whoever waits for a message is told so at once, and the process is destroyed once."""
    pod, handle = make()
    if connected:
        dial()
        assert pod.send({"kind": "a"}) is None
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(pod.receive(60)))
    waiting.start()
    time.sleep(0.2)
    assert pod.end().ending is Ending.COMPLETED
    waiting.join(5)
    assert answers == [Ending.COMPLETED]
    assert handle.destroyed == 1


def test_another_thread_may_end_it_while_it_is_sent_to(make, dial):
    """A send that is stuck ends, too."""
    pod, _ = make()
    dial()
    answers = []
    blob = bytes(8 << 20)
    sending = threading.Thread(target=lambda: answers.append(pod.send({"kind": "a"}, blob, timeout_s=60)))
    sending.start()
    time.sleep(0.3)
    pod.end()
    sending.join(5)
    assert answers == [Ending.COMPLETED]


def test_many_threads_may_end_it(make, dial):
    """All get the same record, of one end."""
    pod, handle = make()
    dial()
    assert at_once(8, lambda _: pod.end()) == [pod.end()] * 8
    assert handle.destroyed == 1
