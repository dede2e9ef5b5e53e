"""Reads how the learner's DALI iterators end an epoch: settings that only exist in the learner's process.

They are claims: an iterator that says `PARTIAL` may do something else. What a liar gains is a pass for an epoch that
the liar's own training would not have.
"""

from typing import Any

PROBE_API = 1
VERSION = "1.0.0"
SITE = "learner"
BUDGET_S = 20.0

MOST = 16


def probe(context: Any) -> dict[str, Any]:
    """Per iterator of the namespace, one level deep in lists, tuples and dicts: its name and settings."""
    import sys

    base = sys.modules.get("nvidia.dali.plugin.base_iterator")
    kind = getattr(base, "_DaliBaseIterator", None)
    if kind is None:
        return {"iterators": []}
    found: list[dict[str, Any]] = []
    for name, value in list(context.names.items())[:5000]:
        if type(value) in (list, tuple):
            inside = [(f"{name}[{place}]", item) for place, item in enumerate(value[:64])]
        elif type(value) is dict:
            inside = [(f"{name}[{key!r}]", item) for key, item in list(value.items())[:64] if type(key) is str]
        else:
            inside = [(name, value)]
        for place, item in inside:
            if issubclass(type(item), kind) and len(found) < MOST:
                found.append({"name": str(place)[:160], **_settings(context, item)})
    return {"iterators": found}


def _settings(context: Any, iterator: Any) -> Any:
    inside = object.__getattribute__(iterator, "__dict__")
    policy = inside.get("_last_batch_policy")
    reader = inside.get("_reader_name")
    settings = {
        "type": type(iterator).__name__[:100],
        "reader_name": context.text(reader, 100) if reader else "",
        "size": _number(inside.get("_size")),
        "policy": context.text(getattr(policy, "name", policy), 40),
        "padded": inside.get("_last_batch_padded") is True,
        "pipelines": len(inside.get("_pipes") or ()),
        "epoch_size": None,
    }
    try:
        meta = next(iter(inside["_pipes"][0].reader_meta().values()))
        settings["epoch_size"] = _number(meta["epoch_size"])
    except Exception:  # noqa: BLE001 - a learner's pipeline may raise anything
        settings["epoch_size"] = None
    return settings


def _number(value: Any) -> Any:
    return int(value) if type(value) is int or type(value).__name__ in ("int64", "int32") else None
