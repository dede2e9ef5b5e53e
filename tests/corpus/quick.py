"""The part of the corpus that `make test` plays: something of every defence, of every family and of every module."""

from tests.corpus import catalogue
from tests.corpus.case import Case
from tests.corpus.defences import defences
from tests.levels.shards import case_unit, longest_first

OUTSIDE = ('"/tmp', '"/dev/shm')
"""What is written there is another pod's too where pods have no walls."""
WALLESS = frozenset("VTK")
"""Families of what a submission says and delivers, and of good faith: whether pods have walls changes nothing."""


def quick() -> tuple[Case, ...]:
    """The first case of each defence, and of each module that has none of these; those that may take long first."""
    chosen = {defence.cases[0] for defence in defences()}
    for module in catalogue.modules():
        if chosen.isdisjoint(case.id for case in module.CASES):
            chosen.add(module.CASES[0].id)
    cases = {case_unit(case.id): case for case in catalogue.cases()}
    return tuple(cases[unit] for unit in longest_first(unit for unit, case in cases.items() if case.id in chosen))


def needs_walls(case: Case) -> bool:
    """Whether a case is played through the Docker sandbox: where its outcome may hang on the walls between pods.

    What measures does not, nor what only says and delivers something; but all that leaves its folder does.
    """
    content = getattr(case, "content", "")
    if isinstance(content, str) and any(place in content for place in OUTSIDE):
        return True
    return case.id[0] not in WALLESS and "benchmark" not in getattr(case, "steps", ())
