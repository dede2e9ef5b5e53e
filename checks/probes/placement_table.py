"""Reads the learner's table of where each stage of the pipeline runs.

Observations: `status` (`present`, `missing`, `unreadable`), `shown` (its type and start) and `rows`, each a key and the
texts of its values. The table may be a dict, a list of pairs or of dicts, or a text with one `stage: device` per line.
It only reads: no method of the learner's objects is called but `str`.
"""

import itertools
from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 15.0

_MOST = 100
_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)


def probe(context: Any) -> dict[str, Any]:
    """See the module."""
    name = str(context.params.get("placement_table", {}).get("name", "placement"))
    if name not in context.names:
        return {"status": "missing", "shown": "", "rows": []}
    value = context.names[name]
    shown = context.text(value, 160)
    try:
        rows = _rows(context, value)
    except _ERRORS:
        rows = None
    return {"status": "unreadable" if rows is None else "present", "shown": shown, "rows": (rows or [])[:_MOST]}


def _rows(context: Any, value: Any) -> Any:
    if issubclass(type(value), dict):
        return [
            [context.text(key, 120), _texts(context, item)] for key, item in itertools.islice(dict.items(value), _MOST)
        ]
    if issubclass(type(value), str):
        lines = [line.strip(" \t-*•") for line in str.__str__(value)[:8000].splitlines()]
        pairs = [line.partition(separator) for line in lines for separator in _separator(line)]
        return [[key.strip()[:120], [rest.strip()[:120]]] for key, _, rest in pairs]
    if issubclass(type(value), (list, tuple)):
        rows = []
        for item in itertools.islice(iter(value), _MOST):
            rows += _record(context, item)
        return rows
    return None


def _separator(line: Any) -> Any:
    """The first separator between a stage and its device, if the line has one."""
    found = [(line.index(mark), mark) for mark in (":", "->", "→", "=", "|") if mark in line]
    return [min(found)[1]] if found else []


def _record(context: Any, item: Any) -> Any:
    if issubclass(type(item), dict):
        keys = {context.text(key, 40).lower(): value for key, value in itertools.islice(dict.items(item), 20)}
        stage = next((keys[name] for name in ("stage", "operator", "op", "name", "step") if name in keys), None)
        device = next((keys[name] for name in ("device", "placement", "where", "runs_on") if name in keys), None)
        if stage is not None and device is not None:
            return [[context.text(stage, 120), _texts(context, device)]]
        return _rows(context, item)
    if issubclass(type(item), (list, tuple)) and len(item) >= 2:
        return [[context.text(item[0], 120), _texts(context, item[1])]]
    if issubclass(type(item), str):
        return _rows(context, item) or []
    return []


def _texts(context: Any, value: Any) -> Any:
    if issubclass(type(value), (list, tuple, set, frozenset)):
        return [context.text(item, 120) for item in itertools.islice(iter(value), 40)]
    return [context.text(value, 120)]
