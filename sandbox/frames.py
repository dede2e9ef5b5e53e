"""Length-prefixed messages between host and guest, read strictly: this is the only way out of a pod.

A frame is two big-endian unsigned 32-bit lengths, then that many bytes of UTF-8 JSON (one object) and of blob.
Nothing is unpickled. Both lengths are checked before a byte of the body is read, nesting before the JSON is parsed.
"""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

HEADER = struct.Struct(">II")


class FrameError(ValueError):
    """The bytes are not a frame that the other side was allowed to send."""


class Message(NamedTuple):
    """One message: a JSON object and the bytes that came with it."""

    body: Mapping[str, object]
    blob: bytes


@dataclass(frozen=True)
class FrameLimits:
    """What a guest may send in one frame."""

    json_bytes: int = 2 << 20
    blob_bytes: int = 16 << 20
    depth: int = 24
    """Deepest nesting of arrays and objects."""
    values: int = 200_000
    """Values in all; a text of 2 MiB may hold a million, of which each costs a validator hundreds of bytes."""
    containers: int = 1 << 16
    """Arrays and objects among them."""


def encode(body: Mapping[str, object], blob: bytes = b"") -> bytes:
    """One frame; raises `ValueError` for NaN, infinities and values that JSON does not have."""
    text = json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    return HEADER.pack(len(text), len(blob)) + text + blob


def lengths(header: bytes, limits: FrameLimits) -> tuple[int, int]:
    """Lengths of JSON and blob, in bytes, from the 8 header bytes.

    Raises:
        FrameError: one of them is above its limit, or the JSON part is empty.
    """
    json_length, blob_length = HEADER.unpack(header)
    if not 0 < json_length <= limits.json_bytes:
        raise FrameError(f"JSON part of {json_length} bytes; expected 1 to {limits.json_bytes}")
    if blob_length > limits.blob_bytes:
        raise FrameError(f"blob of {blob_length} bytes; expected at most {limits.blob_bytes}")
    return json_length, blob_length


def decode_json(data: bytes, limits: FrameLimits) -> Mapping[str, object]:
    """Parses one JSON object: no duplicate keys, no NaN, no huge integers, bounded nesting and number of values.

    Raises:
        FrameError: the bytes are anything else.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FrameError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    _check_form(text, limits)
    try:
        body = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded_int,
        )
    except FrameError:
        raise
    except (ValueError, RecursionError) as error:
        raise FrameError(f"not JSON: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise FrameError(f"expected a JSON object, got {type(body).__name__}")
    return body


def _check_form(text: str, limits: FrameLimits) -> None:
    depth = containers = commas = 0
    in_string = escaped = False
    for char in text:
        if in_string:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_string = False
        elif char == '"':
            in_string = True
        elif char == ",":
            commas += 1
        elif char in "[{":
            depth += 1
            containers += 1
            if depth > limits.depth:
                raise FrameError(f"nested deeper than {limits.depth}")
        elif char in "]}":
            depth -= 1
    if containers > limits.containers:
        raise FrameError(f"{containers} arrays and objects; expected at most {limits.containers}")
    if commas + containers > limits.values:
        raise FrameError(f"about {commas + containers} values; expected at most {limits.values}")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FrameError("an object has a key twice")
    return result


def _refuse_constant(name: str) -> float:
    raise FrameError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise FrameError("a number is too large")
    return value


def _bounded_int(text: str) -> int:
    if len(text) > 20:
        raise FrameError("an integer has more than 20 digits")
    return int(text)
