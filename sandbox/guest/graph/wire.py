"""The protobuf wire format: bytes to numbered fields and back, with hard limits, since a learner made the bytes."""

from typing import NamedTuple

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}
MAX_FIELDS = 200_000
"""Most fields in one message; a TrivialAugment graph has about 1,000 operators."""
_MAX_NUMBER = (1 << 29) - 1
"""Protobuf's own limit. Its parser drops higher bits, so a larger number would be another field there than here."""


class WireError(ValueError):
    """The bytes are not a protobuf message."""


class Field(NamedTuple):
    """One field: its number, its wire type, and an int (varint) or the raw bytes."""

    number: int
    wire: int
    value: int | bytes


def parse(data: bytes) -> list[Field]:
    """Splits one message into its fields, in order.

    Raises:
        WireError: truncated, an unknown wire type or field number, a varint above 64 bits, or too many fields.
    """
    fields: list[Field] = []
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == VARINT:
            value, position = _varint(data, position)
        else:
            if wire == LENGTH:
                size, position = _varint(data, position)
            elif wire in _FIXED_SIZE:
                size = _FIXED_SIZE[wire]
            else:
                raise WireError(f"wire type {wire} at byte {position}")
            if size > len(data) - position:
                raise WireError(f"field {number} is cut off")
            value = data[position : position + size]
            position += size
        if not 0 < number <= _MAX_NUMBER:
            raise WireError(f"field number {number}")
        fields.append(Field(number, wire, value))
        if len(fields) > MAX_FIELDS:
            raise WireError(f"more than {MAX_FIELDS} fields")
    return fields


def emit(fields: list[Field]) -> bytes:
    """The bytes of one message; the inverse of `parse`."""
    out = bytearray()
    for number, wire, value in fields:
        out += _encode_varint(number << 3 | wire)
        if isinstance(value, int):
            out += _encode_varint(value)
        else:
            if wire == LENGTH:
                out += _encode_varint(len(value))
            out += value
    return bytes(out)


def signed(value: int) -> int:
    """A varint as a signed 64-bit integer."""
    return value - (1 << 64) if value >= 1 << 63 else value


def unsigned(value: int) -> int:
    """A signed 64-bit integer as a varint's value."""
    return value & ((1 << 64) - 1)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise WireError("a varint is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise WireError("a varint has more than 64 bits")
    return value & ((1 << 64) - 1), position


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
