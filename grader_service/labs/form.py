"""Judges the form of a lab specification: its fields, and whether this grader is new enough. Knows no check."""

import re
from collections.abc import Iterator

from pydantic import ValidationError

from grader_service import __version__
from grader_service.labs.documents import Document
from grader_service.labs.mistakes import Location, Mistake, error_at
from grader_service.labs.wording import mistakes_of, schema_of
from grader_service.model.lab import LabSpec

_SCHEMA = schema_of(LabSpec)
_MINIMUM = re.compile(r">=(\d{1,6}(?:\.\d{1,6}){0,2})")


def form_of(document: Document) -> LabSpec | tuple[Mistake, ...]:
    """The lab that a document describes, or every mistake of its form."""
    too_old = _too_old(document)
    if too_old is not None:
        return (too_old,)
    twice = tuple(_standing_twice(document))
    try:
        lab = LabSpec.model_validate(document.data)
    except ValidationError as error:
        found = mistakes_of(error, _SCHEMA, document)
        # The model says once more, of the whole lab, what is known here with its line.
        return twice + tuple(mistake for mistake in found if not (twice and mistake.path == ""))
    return twice or lab


def _too_old(document: Document) -> Mistake | None:
    """A grader that is too old would only find fields that it does not know; this says why."""
    wanted = document.data.get("grader")
    match = _MINIMUM.fullmatch(wanted) if isinstance(wanted, str) else None
    if match is None or _numbers(__version__) >= _numbers(match[1]):
        return None
    message = f"this lab needs grader {match[1]} or newer, and this is grader {__version__}; update the grader"
    return error_at(document.places.of_value(("grader",)), "grader.too_old", message, ("grader",))


def _numbers(version: str) -> tuple[int, ...]:
    """Three numbers; those that are not written are 0, and what follows them (`.dev1`, `rc1`) is not looked at."""
    found = re.match(r"\d+(?:\.\d+){0,2}", version)
    parts = [int(part) for part in found[0].split(".")] if found else []
    return tuple([*parts, 0, 0, 0][:3])


def _standing_twice(document: Document) -> Iterator[Mistake]:
    """Ids of steps, and of checks over all steps, must differ."""
    first_of: dict[tuple[str, str], Location] = {}
    for what, location, lab_id in ids_of(document):
        first = first_of.setdefault((what, lab_id), location)
        if first != location:
            line = document.places.of_value(first).line
            message = f'{what} id "{lab_id[:128]}" stands twice; the first one is in line {line}'
            yield error_at(document.places.of_value(location), "id.twice", message, location)


def ids_of(document: Document) -> Iterator[tuple[str, Location, str]]:
    """`step` or `check`, where its id stands, and the id; whatever else the document holds."""
    for step_place, step in tables(document.data.get("steps"), ("steps",)):
        if isinstance(step.get("id"), str):
            yield "step", (*step_place, "id"), str(step["id"])
        for check_place, check in tables(step.get("checks"), (*step_place, "checks")):
            if isinstance(check.get("id"), str):
                yield "check", (*check_place, "id"), str(check["id"])


def tables(value: object, location: Location) -> Iterator[tuple[Location, dict[str, object]]]:
    """The tables in a list, each with its place; nothing where there is no list."""
    for index, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, dict):
            yield (*location, index), item
