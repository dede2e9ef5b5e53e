"""Finds the row of an exception and fills in its texts."""

from collections import defaultdict
from functools import lru_cache

from checks.diagnosis import names
from checks.diagnosis.message import Seen, read
from checks.diagnosis.rows import Diagnosis, Row, compiled, exception_rows
from checks.operator_names import fn_name
from grader_service.model.base import neutralise
from grader_service.model.discovery import LearnerException

_LONGEST_VALUE = 80


@lru_cache(maxsize=64)
def diagnose(exception: LearnerException) -> Diagnosis | None:
    """The first row that fits, specific rows before general ones; None when none does.

    An exception that the learner's own line raises is the learner's to explain, unless it passes on a library's report
    from inside a graph or a worker.
    """
    seen = read(exception)
    if not seen.wrapped and any(source.startswith("raise") for source in seen.sources):
        return None
    for row in exception_rows():
        values = _values(row, seen)
        if values is not None:
            return fill(row, values, seen)
    return None


def fill(row: Row, values: dict[str, str], seen: Seen | None = None) -> Diagnosis:
    """A diagnosis with the row's texts, in which each `{name}` stands for a value; unknown ones are empty."""
    shown = defaultdict(str, {name: shorten(value) for name, value in values.items()})
    if shown["schema"]:
        shown["schema"] = fn_name(shown["schema"])
    return Diagnosis(
        id=row.id,
        about=row.about,
        cause=_tidy(row.cause.format_map(shown)),
        remedy=_tidy(row.remedy.format_map(shown)),
        place=(seen.place or seen.stopped_at) if seen is not None else None,
        operator=seen.operator.removeprefix("nvidia.dali.") if seen is not None else "",
    )


def shorten(value: str) -> str:
    """A learner's value as it is shown: one line, safe characters, at most 80 of them."""
    line = " ".join(neutralise(value[: 4 * _LONGEST_VALUE]).split())
    return line if len(line) <= _LONGEST_VALUE else line[: _LONGEST_VALUE - 1] + "…"


def _values(row: Row, seen: Seen) -> dict[str, str] | None:
    """Values for the row's texts when everything that the row asks for fits, else None."""
    if row.exceptions and seen.type not in row.exceptions:
        return None
    texts = [text for text in seen.texts if not row.contains or any(part in text for part in row.contains)]
    if not texts:
        return None
    if row.operator is not None and not (seen.operator and compiled(row.operator).search(seen.operator)):
        return None
    if row.source is not None and not any(compiled(row.source).search(source) for source in seen.sources):
        return None
    for text in texts:
        if row.pattern is None:
            return {}
        found = compiled(row.pattern).search(text)
        if found is not None:
            values = {name: value or "" for name, value in found.groupdict().items()}
            return values | ({"nearest": names.suggestion(row.suggest, values)} if row.suggest else {})
    return None


def _tidy(text: str) -> str:
    return " ".join(text.split())
