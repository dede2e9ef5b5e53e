"""Reads the learner's acceptance metric: a text, or a dict or list of texts and numbers.

Observations: `status` (`present`, `missing`, `unreadable`), `shown`, and `parts`: pairs of a key (empty where there is
none) and a text, in order. Nested dicts and lists are read two levels deep. No method of the learner's objects is
called but `str`.
"""

import itertools
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 15.0

_MOST, _LONGEST = 40, 3000
_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    name = str(context.params.get("acceptance_metric", {}).get("name", "acceptance_metric"))
    if name not in context.names:
        return {"status": "missing", "shown": "", "parts": []}
    value = context.names[name]
    shown = context.text(value, 160)
    try:
        parts = list(itertools.islice(_parts(context, "", value, 3), _MOST))
    except _ERRORS:
        parts = []
    readable = bool(parts) or (issubclass(type(value), (str, dict, list, tuple)) and not value)
    return {"status": "present" if readable else "unreadable", "shown": shown, "parts": parts}


def _parts(context: Any, key: Any, value: Any, depth: Any) -> Any:
    kind = type(value)
    if issubclass(kind, dict) and depth:
        for inner, item in itertools.islice(dict.items(value), _MOST):
            yield from _parts(context, context.text(inner, 80), item, depth - 1)
    elif issubclass(kind, (list, tuple, set, frozenset)) and depth:
        for item in itertools.islice(iter(value), _MOST):
            yield from _parts(context, key, item, depth - 1)
    elif issubclass(kind, (str, int, float)):
        yield [key, context.text(value, _LONGEST)]
    elif depth and type(getattr(value, "__dict__", None)) is dict and value.__dict__ and not callable(value):
        for inner, item in itertools.islice(value.__dict__.items(), _MOST):
            yield from _parts(context, context.text(inner, 80), item, depth - 1)
