"""Frames: what one side encodes the other one reads; everything else is a `FrameError`, soon and in little memory."""

import json
import struct
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.frames import HEADER, FrameError, FrameLimits, decode_json, encode, lengths

LIMITS = FrameLimits()
NUMBERS = st.integers(-(10**18), 10**19) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def parts(frame, limits=LIMITS):
    """JSON and blob of a whole frame."""
    json_length, blob_length = lengths(frame[: HEADER.size], limits)
    body, blob = frame[HEADER.size :][:json_length], frame[HEADER.size + json_length :]
    assert len(blob) == blob_length
    return decode_json(body, limits), blob


@given(st.dictionaries(st.text(), VALUES, max_size=5), st.binary(max_size=300))
def test_a_frame_comes_back_unchanged(body, blob):
    """Any object of JSON values, any bytes."""
    assert parts(encode(body, blob)) == (body, blob)


@settings(max_examples=300)
@given(st.binary(max_size=400))
@example(b"\xef\xbb\xbf{}")
@example(b"\xff\xfe{\0}\0")
@example(b"[" * 30)
@example(b'{"a":' * 30)
@example(b'"' + b"\\" * 9)
@example(b"{}" * 2)
@example(b"1e999")
def test_any_bytes_are_an_object_or_a_frame_error(data):
    """Nothing else is ever raised, so that no pod can end a worker."""
    try:
        body = decode_json(data, LIMITS)
    except FrameError:
        return
    assert isinstance(body, dict)
    assert json.loads(data) == body


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ((0, 0), "0 bytes; expected 1 to 2097152"),
        ((2**21 + 1, 0), "2097153 bytes"),
        ((2**32 - 1, 2**32 - 1), "4294967295 bytes"),
        ((2, 2**24 + 1), "blob of 16777217 bytes; expected at most 16777216"),
    ],
)
def test_lengths_out_of_bounds(header, words):
    """The message says what came and what was expected."""
    with pytest.raises(FrameError, match=words):
        lengths(struct.pack(">II", *header), LIMITS)


@pytest.mark.parametrize("claimed", [(1, 0), (2**21, 2**24)])
def test_lengths_within_bounds(claimed):
    """The smallest frame and the largest one."""
    assert lengths(struct.pack(">II", *claimed), LIMITS) == claimed


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{}x", "not JSON"),
        (b"[]", "expected a JSON object, got list"),
        (b"5", "got int"),
        (b"null", "got NoneType"),
        (b'"a"', "got str"),
        (b'{"a":1,"a":1}', "a key twice"),
        (b'{"a":{"b":1,"b":2}}', "a key twice"),
        (b'{"a":NaN}', "NaN is not a JSON number"),
        (b'{"a":Infinity}', "Infinity is not"),
        (b'{"a":-Infinity}', "-Infinity is not"),
        (b'{"a":1e999}', "too large"),
        (b'{"a":-1e400}', "too large"),
        (b'{"a":123456789012345678901}', "more than 20 digits"),
        (b'{"a":' + b"9" * 100_000 + b"}", "more than 20 digits"),
        (b'{"a":' + b"[" * 24 + b"]" * 24 + b"}", "nested deeper than 24"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\n"}', "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":01}', "not JSON"),
    ],
)
def test_what_is_not_a_message(data, words):
    """Broken, doubled, deep, huge or not finite: each says what it is."""
    with pytest.raises(FrameError, match=words) as raised:
        decode_json(data, LIMITS)
    assert len(str(raised.value)) < 300


def test_nesting_up_to_the_limit():
    """Brackets inside strings are text, however many."""
    deep = b'{"a":' + b"[" * 23 + b"]" * 23 + b"}"
    assert decode_json(deep, LIMITS)
    assert decode_json(b'{"a":"' + b'\\"[{' * 1000 + b'"}', LIMITS)
    with pytest.raises(FrameError, match="deeper than 2"):
        decode_json(b'{"a":[[]]}', FrameLimits(depth=2))


def test_deep_nesting_is_refused_before_it_is_parsed():
    """Two megabytes of brackets neither crash the parser nor take memory."""
    data = b'{"a":' + b"[" * (LIMITS.json_bytes - 5)
    tracemalloc.start()
    try:
        with pytest.raises(FrameError, match="nested deeper"):
            decode_json(data, LIMITS)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1, 2}, b"bytes", object()])
def test_what_json_does_not_have_is_not_sent(value):
    """An error of ours, at the line that made it."""
    with pytest.raises((ValueError, TypeError)):
        encode({"a": value})


def test_the_guest_speaks_the_same_frames():
    """The pod's half of the protocol, which cannot import ours, has the same header."""
    from sandbox.guest import channel

    assert channel.HEADER.format == HEADER.format
