"""Turns values of a learner's namespace into small plain values, whatever their classes try.

Nothing here calls a learner's method where a built-in type's own will do, and every result is bounded. A value that
cannot be read is said to be unreadable; it is never an error of ours.
"""

import collections
import dataclasses
import itertools
import math
import numbers
import os
import re
import sys
from typing import Any

MAX_SHOWN = 160
MAX_ITEM = 4000
MAX_ITEMS = 64
_MAX_ALL = 64_000
"""Characters of a list, so that two of them fit into one frame however they are escaped."""
_MAX_BITS = 1024
_MAX_PARTS = MAX_ITEMS * 2
_BULLET = re.compile(r"[-*•–·‣◦]|\(?\d{1,3}[.)](?!\d)")
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), collections.deque)


def is_a(value: Any, *kinds: type) -> bool:
    """`isinstance` by the real type: a `__class__` property can neither lie nor raise."""
    return issubclass(type(value), kinds)


def type_name(value: Any, limit: int = MAX_SHOWN) -> str:
    """The name of a value's real type, whatever its metaclass says."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str.__getitem__(name, slice(0, limit)).encode("utf-8", "replace").decode()


def text(value: Any, limit: int) -> str:
    """`str(value)` cut to `limit` characters, without anything that UTF-8 cannot carry."""
    try:
        raw = str.__str__(value) if is_a(value, str) else str(value)
        raw = str.__getitem__(raw, slice(0, limit))
    except BaseException as error:
        raw = f"<{type_name(value, 60)} whose str() raised {type_name(error, 60)}>"[:limit]
    return raw.encode("utf-8", "replace").decode()


def shown(value: Any) -> str:
    """A short form of a value for a message: its type and the start of what it prints."""
    if type(value) is int and int.bit_length(value) > _MAX_BITS:
        return f"int of {int.bit_length(value)} bits"
    if type(value) in (str, int, float, bool, type(None)):
        return text(repr(value[:MAX_SHOWN] if type(value) is str else value), MAX_SHOWN)
    return text(f"{type_name(value)} object", MAX_SHOWN)


def number(value: Any) -> dict[str, Any]:
    """A `Claim`: numbers of Python and numpy, `Decimal`, `Fraction` and 0-d tensors are read, nothing else."""
    result: dict[str, Any] = {"status": "unreadable", "value": None, "shown": shown(value)}
    try:
        found = _plain_number(value)
    except BaseException:
        return result
    if found is not None and math.isfinite(found):
        result.update(status="present", value=found)
    return result


def _plain_number(value: Any) -> float | None:
    if is_a(value, bool):
        return None
    if is_a(value, int):
        return None if int.bit_length(value) > _MAX_BITS else float(int.__int__(value))
    if is_a(value, float):
        return float.__float__(value)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and is_a(value, numpy.number, numpy.ndarray) and value.size == 1:
        return _real(numpy.asarray(value).reshape(()).item())
    if torch is not None and is_a(value, torch.Tensor) and value.numel() == 1:
        return _real(value.detach().cpu().reshape(()).item())
    if isinstance(value, numbers.Number) and not isinstance(value, complex):
        return float(value)  # type: ignore[arg-type]
    return None


def _real(item: Any) -> float | None:
    return float(item) if type(item) in (int, float) else None


def path(value: Any) -> dict[str, Any]:
    """A `PathClaim`: `str`, `bytes` or anything with a file-system path, made absolute."""
    unreadable = {"status": "unreadable", "path": None, "shown": shown(value)}
    try:
        raw = str.__str__(os.fsdecode(os.fspath(value)))
        full = os.path.abspath(os.path.expanduser(raw))
        full.encode("utf-8")
    except BaseException:
        return unreadable
    # NUL is looked for in what the learner gave: some versions of abspath cut a path there.
    if not raw or "\0" in raw or len(full) > 4096:
        return unreadable
    return {"status": "present", "path": full, "shown": text(raw, MAX_SHOWN)}


def text_list(value: Any) -> dict[str, Any]:
    """A `TextList` from the shapes that people use: list, tuple, set, dict, numpy array, or one text with bullets."""
    try:
        parts = _parts(value)
    except BaseException:
        parts = None
    if parts is None:
        return {"status": "unreadable", "items": [], "truncated": False, "shown": shown(value)}
    items = [item for item in (_item(part) for part in parts[:_MAX_PARTS]) if item is not None]
    cut = len(parts) > MAX_ITEMS or any(len(item) >= MAX_ITEM for item in items)
    kept: list[str] = []
    left = _MAX_ALL
    for item in items[:MAX_ITEMS]:
        cut = cut or len(item) > left
        kept.append(item[:left])
        left -= len(kept[-1])
    one_text = bool(is_a(value, str))
    return {"status": "present", "items": kept, "truncated": cut, "one_text": one_text, "shown": shown(value)}


def _parts(value: Any) -> list[Any] | None:
    if is_a(value, str):
        return _bullets(str.__str__(value)[: MAX_ITEM * MAX_ITEMS])
    if is_a(value, dict):
        pairs = itertools.islice(dict.items(value), _MAX_PARTS)
        return [key if item is None or item is True or _is_blank(item) else (key, item) for key, item in pairs]
    if (parts := _elements(value, _MAX_PARTS)) is not None:
        return parts
    unordered: type
    for unordered in (set, frozenset):
        if is_a(value, unordered):
            return sorted(text(item, MAX_ITEM) for item in itertools.islice(unordered.__iter__(value), _MAX_PARTS))
    if type(value) in _VIEWS:
        return list(itertools.islice(value, _MAX_PARTS))
    numpy = sys.modules.get("numpy")
    if numpy is not None and is_a(value, numpy.ndarray):
        return list(value.ravel()[:_MAX_PARTS].tolist())
    return None


def _elements(value: Any, most: int) -> list[Any] | None:
    """The first elements that a list or tuple really has; None for anything else."""
    if is_a(value, list):
        return list(itertools.islice(list.__iter__(value), most))
    if is_a(value, tuple):
        return list(itertools.islice(tuple.__iter__(value), most))
    return None


def _is_blank(item: Any) -> bool:
    return type(item) is str and not item


def _bullets(block: str) -> list[Any]:
    """One text: its bullet points or numbered lines if it has two or more, else its paragraphs."""
    lines = block.splitlines()
    starts = [i for i, line in enumerate(lines) if _BULLET.match(line.strip())]
    if len(starts) > 1:
        ends = [*starts[1:], len(lines)]
        return [" ".join(x.strip() for x in lines[a:b]) for a, b in zip(starts, ends, strict=True)]
    paragraphs = [" ".join(part.split()) for part in "\n".join(lines).split("\n\n") if part.strip()]
    return paragraphs if len(paragraphs) > 1 else [line for line in lines if line.strip()]


def _item(part: Any) -> str | None:
    if part is None:
        return None
    try:
        values = _fields(part)
    except BaseException:
        values = None
    if values is None:
        return text(part, MAX_ITEM)
    return text(": ".join(text(value, MAX_ITEM) for value in values), MAX_ITEM)


def _fields(part: Any) -> list[Any] | None:
    """The parts of a text that was given as a record: dict, dataclass, or pair."""
    if is_a(part, dict):
        return [value for pair in itertools.islice(dict.items(part), 8) for value in pair]
    if (elements := _elements(part, 8)) is not None:
        return elements
    if dataclasses.is_dataclass(part) and not is_a(part, type):
        return [getattr(part, field.name, "") for field in dataclasses.fields(part)][:8]
    return None
