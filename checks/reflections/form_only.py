"""Looks at the form of both lists alone: rules that anybody may know, and nothing of what the entries mean."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from checks.reflections.feedback import on_entries
from checks.reflections.items import Side, items_of
from checks.reflections.sifting import doubt, sift
from grader_service.model.feedback import Advice, Severity

_MOST_ADVICE = 8


class Form(NamedTuple):
    """Of one list."""

    entries: int
    counted: int
    """Entries that nothing in their form keeps from counting."""
    advice: tuple[Advice, ...]
    """On those that do not count, and as notes on those that a person would look at."""


def form_of(wins: Sequence[str], loses: Sequence[str]) -> Mapping[Side, Form]:
    """The form of both lists: entries may repeat those of the other one."""
    lists = items_of(wins, loses)
    sift(lists)
    fine = {item for item in chain(*lists.values()) if item.counted}
    doubt(lists)
    forms = {}
    for side, items in lists.items():
        said: list[Advice] = []
        for item in (one for one in items if not one.counted):
            told = (Severity.NOTE, "perhaps ") if item in fine else (Severity.WARNING,)
            said += on_entries([item], *told)
        forms[side] = Form(len(items), len(fine.intersection(items)), tuple(said[:_MOST_ADVICE]))
    return forms
