"""Looks at the form of both lists alone: rules that anybody may know, and nothing of what the entries mean."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from checks.reflections.feedback import on_entries
from checks.reflections.form.sifting import doubts, sift
from checks.reflections.items import Judged, items_of
from checks.reflections.reasons import Reason, Side
from grader_service.model.feedback import Advice, Severity

_MOST_ADVICE = 8


@dataclass(frozen=True)
class Form:
    """Of one list."""

    entries: int
    counted: int
    """Entries that nothing in their form keeps from counting."""
    advice: tuple[Advice, ...]
    """On those that do not count, and as notes on those that a person would look at."""


def form_of(wins: Sequence[str], loses: Sequence[str]) -> Mapping[Side, Form]:
    """The form of both lists: entries may repeat those of the other one."""
    lists = items_of(wins, loses)
    found = sift(lists)
    doubted = {place: finding for place, finding in doubts(lists).items() if place not in found}
    forms = {}
    for side, items in lists.items():
        said = []
        for item in items:
            reason, twin = found.get(item.place) or doubted.get(item.place) or (Reason.COUNTED, None)
            judged = Judged(side, item.number, item.text, reason, twin)
            if item.place in found:
                said.append(on_entries([judged], Severity.WARNING))
            elif item.place in doubted:
                said.append(on_entries([judged], Severity.NOTE, "perhaps "))
        counted = sum(item.place not in found for item in items)
        forms[side] = Form(len(items), counted, tuple(said[:_MOST_ADVICE]))
    return forms
