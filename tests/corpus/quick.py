"""The part of the corpus that `make test` plays: something of every defence, of every family and of every module."""

import math
from collections.abc import Iterable

from tests.corpus import catalogue
from tests.corpus.case import Case
from tests.corpus.defences import defences
from tests.levels.shards import case_unit, longest_first, recorded


def quick() -> tuple[Case, ...]:
    """The shortest case of each defence and of each module that no case before is of; the longest begin first."""
    seconds = recorded()
    chosen: set[str] = set()
    wanted: list[Iterable[str]] = sorted((defence.cases for defence in defences()), key=len)
    wanted += ([case.id for case in module.CASES] for module in catalogue.modules())
    for cases in wanted:
        if chosen.isdisjoint(cases):
            chosen.add(min(cases, key=lambda case_id: (seconds.get(case_unit(case_id), math.inf), case_id)))
    found = {case_unit(case.id): case for case in catalogue.cases()}
    return tuple(found[unit] for unit in longest_first(unit for unit, case in found.items() if case.id in chosen))
