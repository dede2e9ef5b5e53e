"""Bytes of a learner as protobuf fields: read back exactly, or refused with WireError, never anything else."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.guest.graph import wire
from sandbox.guest.graph.wire import FIXED32, FIXED64, LENGTH, VARINT, Field, WireError

NUMBERS = st.integers(1, (1 << 29) - 1)
FIELDS = st.one_of(
    st.builds(Field, NUMBERS, st.just(VARINT), st.integers(0, (1 << 64) - 1)),
    st.builds(Field, NUMBERS, st.just(LENGTH), st.binary(max_size=60)),
    st.builds(Field, NUMBERS, st.just(FIXED32), st.binary(min_size=4, max_size=4)),
    st.builds(Field, NUMBERS, st.just(FIXED64), st.binary(min_size=8, max_size=8)),
)


@given(st.lists(FIELDS, max_size=20))
def test_what_is_written_is_read_back(fields):
    """Any list of fields survives a round trip, in order."""
    assert wire.parse(wire.emit(fields)) == fields


@given(st.binary(max_size=400))
def test_garbage_is_a_wire_error_or_fields(data):
    """Bytes of any kind give fields or WireError; what was read can be written, and reads the same."""
    try:
        fields = wire.parse(data)
    except WireError:
        return
    assert wire.parse(wire.emit(fields)) == fields
    assert len(wire.emit(fields)) <= len(data)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_integers_survive(value):
    """A signed 64-bit integer is the same after it was a varint."""
    assert wire.signed(wire.unsigned(value)) == value
    [field] = wire.parse(wire.emit([Field(1, VARINT, wire.unsigned(value))]))
    assert wire.signed(field.value) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x08", "cut off"),
        (b"\x08\x80", "cut off"),
        (b"\x0a\x05abc", "field 1 is cut off"),
        (b"\x0d\x00\x00", "field 1 is cut off"),
        (b"\x0a" + b"\xff" * 8 + b"\x7f" + b"x", "field 1 is cut off"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
        (b"\x02\x00", "field number 0"),
        (b"\x08" + b"\x80" * 10 + b"\x01", "more than 64 bits"),
    ],
)
def test_each_kind_of_damage_has_its_words(data, words):
    """A message says what is wrong with the bytes; a promised length of 2**63 bytes is refused like any other."""
    with pytest.raises(WireError, match=words):
        wire.parse(data)


@pytest.mark.parametrize("number", [1 << 29, (1 << 29) + 5, (1 << 61) - 1])
def test_field_numbers_that_protobuf_would_cut_are_refused(number):
    """Protobuf's parser drops the high bits of a tag, so field 2**29 + 5 would be field 5 there and unknown here."""
    with pytest.raises(WireError, match="field number"):
        wire.parse(wire.emit([Field(number, LENGTH, b"")]))
    assert wire.parse(wire.emit([Field((1 << 29) - 1, LENGTH, b"")]))


def test_too_many_fields_are_refused_in_bounded_time():
    """Megabytes of two-byte fields end at the cap."""
    started = time.process_time()
    with pytest.raises(WireError, match="more than 200000 fields"):
        wire.parse(b"\x08\x01" * 2_000_000)
    assert time.process_time() - started < 5.0


@settings(max_examples=50)
@given(st.lists(FIELDS, min_size=1, max_size=6), st.data())
def test_every_cut_of_a_message_is_shorter_or_an_error(fields, data):
    """Truncation anywhere gives fewer fields or WireError, never other values."""
    whole = wire.emit(fields)
    cut = data.draw(st.integers(0, len(whole) - 1))
    try:
        got = wire.parse(whole[:cut])
    except WireError:
        return
    assert got == fields[: len(got)]
    assert len(got) < len(fields)
