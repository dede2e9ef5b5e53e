"""The host's end of a pod's one connection, with real sockets on both sides."""

import contextlib
import os
import socket
import stat
import struct
import threading
import time
import tracemalloc

import pytest

from sandbox.endpoint import SOCKET_NAME, Endpoint, Silence, listen
from sandbox.frames import HEADER, FrameError, FrameLimits, Message, encode

LIMITS = FrameLimits(json_bytes=1000, blob_bytes=1 << 20)


def soon(seconds=5.0):
    return time.monotonic() + seconds


def always():
    return True


@pytest.fixture
def endpoint(tmp_path):
    """An endpoint that listens."""
    made = Endpoint(tmp_path, LIMITS)
    yield made
    made.close()


def dial(folder):
    """Connects as a guest does, whatever the path's length."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    guest = socket.socket(socket.AF_UNIX)
    guest.settimeout(10)
    try:
        guest.connect(f"/proc/self/fd/{descriptor}/{SOCKET_NAME}")
    finally:
        os.close(descriptor)
    return guest


@pytest.fixture
def pair(endpoint, tmp_path):
    """An endpoint and the guest's socket, connected."""
    guest = dial(tmp_path)
    assert endpoint.connect(soon(), always) is None
    yield endpoint, guest
    guest.close()


def test_messages_go_both_ways(pair):
    """With their bytes."""
    endpoint, guest = pair
    assert endpoint.send({"a": 1}, b"blob", soon()) is None
    assert guest.recv(1000) == encode({"a": 1}, b"blob")
    guest.sendall(encode({"b": [2]}, b"x" * 100_000))
    assert endpoint.receive(soon()) == Message({"b": [2]}, b"x" * 100_000)


def test_two_messages_in_one_packet(pair):
    """Frames are cut by their lengths, not by how they arrive."""
    endpoint, guest = pair
    guest.sendall(encode({"a": 1}) + encode({"b": 2}, b"z"))
    assert endpoint.receive(soon()).body == {"a": 1}
    assert endpoint.receive(soon()) == Message({"b": 2}, b"z")


@pytest.mark.parametrize("length", [20, 108, 109, 200, 250])
def test_long_paths(tmp_path, length):
    """A socket's own path may have 107 bytes; a state folder may be deeper."""
    folder = tmp_path / ("d" * length)
    folder.mkdir()
    endpoint = Endpoint(folder, LIMITS)
    guest = dial(folder)
    assert endpoint.connect(soon(), always) is None
    guest.close()
    endpoint.close()


@pytest.mark.parametrize("mask", [0o077, 0o777, 0o000])
def test_the_pods_uid_may_connect(tmp_path, umask, mask):
    """Whatever the grader's umask is."""
    umask(mask)
    endpoint = Endpoint(tmp_path, LIMITS)
    assert stat.S_IMODE((tmp_path / SOCKET_NAME).stat().st_mode) == 0o666
    endpoint.close()


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(("folder", "problem"), [("missing", "No such file"), (".", "in use")])
def test_a_folder_that_is_missing_or_another_endpoints(tmp_path, folder, problem, nothing_stays_open):
    """No socket is left open behind the error."""
    with nothing_stays_open(), pytest.raises(OSError, match=problem):
        Endpoint(tmp_path / folder, LIMITS)


def test_only_the_first_connection_is_taken(pair, tmp_path):
    """Afterwards there is no name to connect to."""
    assert not (tmp_path / SOCKET_NAME).exists()
    with pytest.raises(OSError, match="No such file"):
        dial(tmp_path)


def test_nobody_listens_even_where_another_process_has_a_copy(tmp_path):
    """The pod broker may close its own only after the guest was asked something, and the name stays for longer."""
    listener = listen(tmp_path)
    with listener.dup(), contextlib.closing(Endpoint(listener, LIMITS)) as endpoint, dial(tmp_path) as guest:
        assert endpoint.connect(soon(), always) is None
        with pytest.raises(ConnectionRefusedError):
            dial(tmp_path)
        guest.sendall(encode({"who": "first"}))
        assert endpoint.receive(soon()).body == {"who": "first"}


def test_one_that_waited_behind_the_first_is_cut(endpoint, tmp_path):
    """A second connection that was made in time is closed, not kept for later."""
    first, second = dial(tmp_path), dial(tmp_path)
    assert endpoint.connect(soon(), always) is None
    first.sendall(encode({"who": "first"}))
    assert endpoint.receive(soon()).body == {"who": "first"}
    with pytest.raises(OSError):
        second.sendall(b"x")
        if not second.recv(1):
            raise ConnectionResetError
    first.close()
    second.close()


def test_nobody_connects(endpoint):
    """The deadline ends the wait."""
    started = time.monotonic()
    assert endpoint.connect(soon(0.3), always) is Silence.DEADLINE
    assert 0.25 < time.monotonic() - started < 20


def test_a_guest_that_ended_before_it_connected(endpoint):
    """Its end ends the wait, long before the deadline."""
    started = time.monotonic()
    assert endpoint.connect(soon(60), lambda: False) is Silence.CLOSED
    assert time.monotonic() - started < 20


def test_connecting_again_is_nothing_new(pair):
    """Each message may ask for it."""
    assert pair[0].connect(time.monotonic() - 1, always) is None


@pytest.mark.parametrize("sent", [0, 3, 8, 12, 30])
def test_a_missed_deadline(pair, sent):
    """However much of a frame has come; and it is met to the moment."""
    endpoint, guest = pair
    guest.sendall(encode({"a": "b" * 20}, b"c" * 50)[:sent])
    started = time.monotonic()
    assert endpoint.receive(soon(0.3)) is Silence.DEADLINE
    assert 0.25 < time.monotonic() - started < 20


def test_a_dripping_frame_does_not_stretch_the_deadline(pair):
    """A byte every 20 ms keeps a connection busy, and no deadline away."""
    endpoint, guest = pair
    stop = threading.Event()

    def drip():
        guest.sendall(HEADER.pack(900, 0))
        while not stop.wait(0.02):
            guest.sendall(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    started = time.monotonic()
    assert endpoint.receive(soon(0.5)) is Silence.DEADLINE
    assert time.monotonic() - started < 20
    stop.set()
    thread.join()


def test_a_closed_connection_between_frames(pair):
    """Is silence, not a violation."""
    endpoint, guest = pair
    guest.sendall(encode({"a": 1}))
    guest.close()
    assert endpoint.receive(soon()).body == {"a": 1}
    assert endpoint.receive(soon()) is Silence.CLOSED


@pytest.mark.parametrize("sent", [1, 7, 8, 9, 20, 40])
def test_a_torn_frame(pair, sent):
    """A connection that closes inside a frame broke the protocol, wherever the tear is."""
    endpoint, guest = pair
    guest.sendall(encode({"a": "b" * 10}, b"c" * 50)[:sent])
    guest.close()
    with pytest.raises(FrameError, match="closed inside a frame"):
        endpoint.receive(soon())


@pytest.mark.parametrize("header", [(0, 0), (1001, 0), (2, (1 << 20) + 1), (2**32 - 1, 2**32 - 1)])
def test_an_absurd_header_is_refused_at_once(pair, header):
    """Nothing of the body is waited for."""
    endpoint, guest = pair
    guest.sendall(struct.pack(">II", *header))
    started = time.monotonic()
    with pytest.raises(FrameError, match="expected"):
        endpoint.receive(soon(30))
    assert time.monotonic() - started < 20


def test_a_promise_takes_no_memory(pair):
    """Memory grows with what arrives, not with what the header says."""
    endpoint, guest = pair
    tracemalloc.start()
    try:
        guest.sendall(HEADER.pack(2, 1 << 20) + b"{}")
        assert endpoint.receive(soon(0.2)) is Silence.DEADLINE
        assert tracemalloc.get_traced_memory()[1] < 1 << 19
    finally:
        tracemalloc.stop()


def test_a_guest_that_does_not_read(pair):
    """Sending has a deadline, too."""
    endpoint, _ = pair
    started = time.monotonic()
    assert endpoint.send({"a": 1}, b"x" * (8 << 20), soon(0.5)) is Silence.DEADLINE
    assert 0.4 < time.monotonic() - started < 20


def test_a_guest_that_is_gone(pair):
    """Sending to it is silence, never an error."""
    endpoint, guest = pair
    guest.close()
    outcomes = [endpoint.send({"a": 1}, b"x" * 100_000, soon()) for _ in range(3)]
    assert outcomes[-1] is Silence.CLOSED


def test_closing_removes_the_name(tmp_path):
    """Connected or not, once or twice."""
    endpoint = Endpoint(tmp_path, LIMITS)
    endpoint.close()
    endpoint.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="No such file"):
        dial(tmp_path)


def test_closing_ends_the_guests_wait(pair):
    """Guests end when the host goes away."""
    endpoint, guest = pair
    endpoint.close()
    assert guest.recv(1) == b""


def test_speaking_before_connecting_is_a_mistake_of_ours(endpoint):
    """And is not hidden."""
    with pytest.raises(RuntimeError, match="connect"):
        endpoint.receive(soon())
