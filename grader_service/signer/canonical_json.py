"""Canonical JSON (RFC 8785) of documents that are signed by the thousand.

Python's own encoder, in C, writes the same bytes as the library `rfc8785` wherever numbers and keys are such that both
rules agree, which those of verdicts nearly always are; every other document goes to the library. What verifies a
signature uses the library alone (see `signatures`), so that nothing is taken on this module's word.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import rfc8785

_LARGEST_INTEGER = 2**53 - 1
_PLAIN_FROM = 1e-4
"""From here on Python writes a fraction without an exponent, as ECMAScript does; an exponent looks different there."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical_json(document: Mapping[str, Any]) -> bytes:
    """The bytes that `rfc8785.dumps` gives.

    Raises:
        rfc8785.CanonicalizationError: a value has no canonical form, such as NaN or an integer beyond 2^53 - 1.
    """
    try:
        return _ENCODER.encode(_agreed(document)).encode()
    except (_LibraryOnly, UnicodeEncodeError):
        return rfc8785.dumps(dict(document))


class _LibraryOnly(Exception):
    """Python's encoder would write this in another way, or not refuse it."""


_AS_IT_IS = frozenset({str, bool, type(None)})


def _agreed(value: Any) -> Any:
    """The same value, whole numbers as integers; raises `_LibraryOnly` where it could be written in two ways."""
    kind = type(value)  # exactly: what a subclass would say of itself is the library's to decide
    if kind in _AS_IT_IS:
        return value
    if kind is dict:
        _check_names(value)
        return {name: item if type(item) in _AS_IT_IS else _agreed(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [item if type(item) in _AS_IT_IS else _agreed(item) for item in value]
    if kind is float and value.is_integer():
        value = int(value)  # NaN and infinity are no integers, and not within the bounds below
        kind = int
    if (kind is int and abs(value) <= _LARGEST_INTEGER) or (
        kind is float and _PLAIN_FROM <= abs(value) <= _LARGEST_INTEGER
    ):
        return value
    raise _LibraryOnly


def _check_names(names: Iterable[object]) -> None:
    """Keys are ordered by UTF-16 there and by code point here, which is the same for ASCII."""
    for name in names:
        if type(name) is not str or not name.isascii():
            raise _LibraryOnly
