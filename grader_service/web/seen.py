"""What a check saw, arranged for the person who decides: texts with what the check says of each, and the rest; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader_service.report import words
from grader_service.report.formats import scalar
from grader_service.store.reviews import CaseView

_DEEPEST = 5
_MOST_SHOWN = 200
"""Entries of one list or mapping; `grader reviews show` has them all."""
_OPINION = "second_opinion"


@dataclass(frozen=True)
class Shown:
    """A value as a page shows it: a text, values one below the other, named values, or a table."""

    text: str = ""
    entries: Sequence["Shown"] = ()
    named: Sequence[tuple[str, "Shown"]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    left_out: int = 0
    """Entries that are not shown."""


@dataclass(frozen=True)
class Item:
    """One text of a list."""

    number: int
    """From 1."""
    text: str
    counted: bool | None = None
    """None where the check does not say."""
    why: str = ""
    """In words, why the check does not count it."""


@dataclass(frozen=True)
class Texts:
    """A list of texts that the check looked at."""

    name: str
    items: Sequence[Item]


@dataclass(frozen=True)
class Opinion:
    """What a model said of it; see *Second opinion* in docs/operations.md. Its texts may be the learner's."""

    model: str
    opinion: str
    why: str
    items: Shown


@dataclass(frozen=True)
class Arranged:
    """All that a case has to show."""

    texts: Sequence[Texts] = ()
    others: Shown = field(default_factory=Shown)
    """What else the check saw."""
    figures: Shown = field(default_factory=Shown)
    """What the check says for staff."""
    opinion: Opinion | None = None


def arranged(view: CaseView, codes: Mapping[str, str], order: Sequence[str] = ()) -> Arranged:
    """What a person needs for the decision.

    Args:
        view: the case.
        codes: of its check, each with what it means.
        order: names of the observation's fields, as the check lists them.
    """
    seen = dict(view.seen) if isinstance(view.seen, Mapping) else {}
    seen = {name: seen[name] for name in [*(name for name in order if name in seen), *sorted(seen)]}
    details = dict(view.check.details) if view.check is not None else {}
    said = details.pop(_OPINION, None)
    lists = {name: value for name, value in seen.items() if value and _all(value, str)}
    return Arranged(
        texts=[Texts(name, _items(value, details.get(name), view, codes)) for name, value in lists.items()],
        others=shown({name: value for name, value in seen.items() if name not in lists}),
        figures=shown(details),
        opinion=_opinion(said) if isinstance(said, Mapping) else None,
    )


def shown(value: object, depth: int = 0) -> Shown:
    """Any JSON value, at most so deep and so long as a page bears."""
    if isinstance(value, Mapping) and value and depth < _DEEPEST:
        named = [(str(name), shown(one, depth + 1)) for name, one in list(value.items())[:_MOST_SHOWN]]
        return Shown(named=named, left_out=len(value) - len(named))
    if isinstance(value, list) and value and depth < _DEEPEST:
        first = value[:_MOST_SHOWN]
        left_out = len(value) - len(first)
        if _all(first, Mapping):
            columns = list(dict.fromkeys(str(name) for row in first for name in row))
            rows = [[scalar(row[name]) if name in row else "" for name in columns] for row in first]
            return Shown(columns=columns, rows=rows, left_out=left_out)
        if _all(first, (int, float, bool, type(None))):
            return Shown(text=", ".join(map(scalar, first)), left_out=left_out)
        return Shown(entries=[shown(one, depth + 1) for one in first], left_out=left_out)
    return Shown(text=scalar(value))


def _items(texts: Sequence[str], said: object, view: CaseView, codes: Mapping[str, str]) -> list[Item]:
    """Texts with what the check's details say of each: entries `index` (from 1), `counted` and `reason`."""
    rows = said if isinstance(said, list) else []
    of = {row["index"]: row for row in rows if isinstance(row, Mapping) and type(row.get("index")) is int}
    found = []
    for number, text in enumerate(texts, start=1):
        row = of.get(number, {})
        counted = row["counted"] if isinstance(row.get("counted"), bool) else None
        reason = str(row.get("reason") or "")
        why = codes.get(f"{view.case.check_id}.{reason}") or words.title(reason)
        found.append(Item(number, text, counted, "" if counted or not reason else why))
    return found


def _opinion(said: Mapping[str, Any]) -> Opinion:
    model, opinion, why = (str(said.get(name, "")) for name in ("model", "opinion", "why"))
    return Opinion(model, opinion, why, shown(said["items"]) if said.get("items") else Shown())


def _all(value: object, kinds: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, kinds) for one in value)
