"""The part of the corpus that `make test` plays: something of every defence, of every family and of every module."""

from tests.corpus import catalogue
from tests.corpus.case import Case
from tests.corpus.defences import defences
from tests.levels.shards import recorded

OUTSIDE = '"/tmp'
"""What is written there is another pod's too where pods have no walls."""


def quick() -> tuple[Case, ...]:
    """The first case of each defence and of each module, the longest first; a case may stand for several."""
    chosen = {defence.cases[0] for defence in defences()}
    chosen |= {module.CASES[0].id for module in catalogue.modules()}
    seconds = recorded()
    cases = [case for case in catalogue.cases() if case.id in chosen]
    return tuple(sorted(cases, key=lambda case: -seconds.get(f"tests/corpus/test_whole.py::test_case[{case.id}]", 1.0)))


def needs_walls(case: Case) -> bool:
    """Whether a case is played through the Docker sandbox: all but those that measure and keep to their folder."""
    content = getattr(case, "content", "")
    return "benchmark" not in getattr(case, "steps", ()) or (isinstance(content, str) and OUTSIDE in content)
