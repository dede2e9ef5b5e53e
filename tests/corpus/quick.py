"""The part of the corpus that `make test` plays: something of every defence, of every family and of every module."""

from tests.corpus import catalogue
from tests.corpus.case import Case
from tests.corpus.defences import defences
from tests.levels.shards import case_unit, longest_first


def quick() -> tuple[Case, ...]:
    """The first case of each defence, and of each module that has none of these; those that may take long first."""
    chosen = {defence.cases[0] for defence in defences()}
    for module in catalogue.modules():
        if chosen.isdisjoint(case.id for case in module.CASES):
            chosen.add(module.CASES[0].id)
    cases = {case_unit(case.id): case for case in catalogue.cases()}
    return tuple(cases[unit] for unit in longest_first(unit for unit, case in cases.items() if case.id in chosen))
