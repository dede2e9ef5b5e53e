"""Changes texts by chance; JSON as a value, since random bytes hardly ever come past a parser."""

import copy
import json
import random
from typing import Any

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63, -(2**63), 10**19, 0.0, -0.0, 1e-320, 1e308, 0.5,
    "", " ", "\x00", "\ud800", "\u202e\x1b[31m", "{x} %s", "\U0001f600" * 3, "a" * 300, "1e5", "nan", "../..", [], {},
    [[]], {"": None}, [None] * 20, "0" * 70,
)  # fmt: skip
_DEEPEST = 200


def mutated(data: bytes, numbers: random.Random) -> bytes | None:
    """The text with one to four places changed; None when it is no JSON."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for _ in range(numbers.choice((1, 1, 2, 4))):
        value = _changed(value, numbers)
    return json.dumps(value).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value below, without the outermost."""
    found: list[tuple[Any, Any]] = []
    waiting = [(value, 0)]
    while waiting and len(found) < 5000:
        part, depth = waiting.pop()
        if depth > _DEEPEST:
            continue
        inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, child in inner:
            found.append((part, key))
            waiting.append((child, depth + 1))
    return found


def _changed(value: Any, numbers: random.Random) -> Any:
    places = _places(value)
    if not places:
        return copy.deepcopy(numbers.choice(STRANGE))
    container, key = numbers.choice(places)
    old = container[key]
    kind = numbers.randrange(9)
    if kind == 0:
        del container[key]
    elif kind == 1:
        other, place = numbers.choice(places)
        # By value: what stands in itself is no JSON.
        container[key] = json.loads(json.dumps(other[place])) if place in _keys(other) else None
    elif kind == 2 and isinstance(container, dict):
        container[numbers.choice(("", "x", "kind", "\x00", "\ud800", "a" * 90, f"{key}2"))] = old
    elif kind == 3 and isinstance(old, list) and old:
        container[key] = old * numbers.choice((2, 20, 70))
        if len(container[key]) > 5000:
            container[key] = old
    elif kind == 4 and isinstance(old, str):
        container[key] = _changed_text(old, numbers)
    elif kind == 5 and isinstance(old, (int, float)) and not isinstance(old, bool):
        container[key] = numbers.choice((old + 1, -old, old * 1000, old / 3, old // 2 if old else 7, 16, 17, 64, 65))
    elif kind == 6:
        container[key] = [old]
    elif kind == 7:
        container[key] = {str(key): old}
    else:
        container[key] = copy.deepcopy(numbers.choice(STRANGE))
    return value


def _keys(container: Any) -> Any:
    return container if isinstance(container, dict) else range(len(container))


def _changed_text(text: str, numbers: random.Random) -> str:
    place = numbers.randrange(len(text) + 1)
    piece = numbers.choice(
        (" ", "\n", "\x00", "'", '"', "%", "{", "}", "(", "\\", ":", "/", "\u0301", "9", "-", "e", "[", "]")
    )
    kind = numbers.randrange(4)
    if kind == 0:
        return text[:place] + piece + text[place:]
    if kind == 1:
        return text[:place] + text[place + numbers.randrange(1, 9) :]
    if kind == 2:
        return (text * numbers.choice((2, 3, 50)))[:20_000]
    return text[:place] + piece * numbers.choice((2, 40, 4000)) + text[place:]


def jumbled(data: bytes, numbers: random.Random, others: list[bytes]) -> bytes:
    """The bytes with some changed, added, taken away or copied from other texts."""
    changed = bytearray(data)
    for _ in range(numbers.choice((1, 2, 4, 8))):
        place = numbers.randrange(len(changed) + 1)
        kind = numbers.randrange(4)
        if kind == 0 and place < len(changed):
            changed[place] = numbers.randrange(256)
        elif kind == 1:
            changed[place:place] = bytes(numbers.randrange(256) for _ in range(numbers.randrange(1, 9)))
        elif kind == 2:
            del changed[place : place + numbers.randrange(1, 9)]
        else:
            other = numbers.choice(others)
            start = numbers.randrange(len(other) + 1)
            changed[place : place + 16] = other[start : start + numbers.choice((4, 16, 200))]
    return bytes(changed)
