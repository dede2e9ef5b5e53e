"""`make test-all` in shards: units of about equal sums of recorded durations.

A unit is a file of tests; of files whose tests share nothing, such as the corpus, it is a single test.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from tests.levels.parts import ROOT, Test

DURATIONS = ROOT / "tests" / "levels" / "durations.json"
"""Seconds of each unit; `python -m tests.levels record` writes it from the reports of a run."""
_WHOLE_CORPUS, _WITHOUT = "tests/corpus/test_whole.py", "tests/corpus/test_defences.py"
QUICK_CORPUS = "tests/corpus/test_quick.py"
"""For `make test` alone: it plays a part of the whole corpus."""
BY_TEST = frozenset({_WHOLE_CORPUS, _WITHOUT, QUICK_CORPUS})
"""Files whose tests share nothing."""


def unit_of(test_id: str) -> str:
    """The unit that a test belongs to."""
    file = test_id.partition("::")[0]
    return test_id if file in BY_TEST else file


def case_unit(case_id: str) -> str:
    """A case of the corpus."""
    return f"{_WHOLE_CORPUS}::test_case[{case_id}]"


def defence_unit(defence_id: str) -> str:
    """A defence that is switched off."""
    return f"{_WITHOUT}::test_without[{defence_id}]"


def recorded() -> dict[str, float]:
    """Seconds of each unit, as last recorded."""
    found: dict[str, float] = json.loads(DURATIONS.read_text())
    return found


def longest_first(units: Iterable[str]) -> list[str]:
    """Units, so that the last ones to end are short. One that was never recorded may take long, so it begins early."""
    seconds = recorded()
    return sorted(units, key=lambda unit: (-seconds.get(unit, math.inf), unit))


def divided(units: Iterable[str], number: int, seconds: Mapping[str, float]) -> list[list[str]]:
    """`number` shards, each with its units in order; the longest units are dealt first, each to the emptiest shard.

    A unit that was never recorded counts as the median one.
    """
    usual = median(seconds.values()) if seconds else 1.0
    shards: list[list[str]] = [[] for _ in range(number)]
    sums = [0.0] * number
    for unit in sorted(units, key=lambda unit: (-seconds.get(unit, usual), unit)):
        emptiest = sums.index(min(sums))
        shards[emptiest].append(unit)
        sums[emptiest] += seconds.get(unit, usual)
    return [sorted(shard) for shard in shards]


def parsed(text: str) -> tuple[int, int]:
    """Number and count of `k/n`.

    Raises:
        ValueError: it is not of this form.
    """
    first, slash, second = text.partition("/")
    if not (slash and first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise ValueError(f"SHARD={text}: expected k/n with 1 ≤ k ≤ n, such as 2/6")
    return int(first), int(second)


def write(tests: Sequence[Test]) -> None:
    """Records what units took in a run; what it did not run keeps its figures, what is gone is dropped.

    A test that several reports name counts once, as the last one has it. The quick corpus is in no shard.
    """
    took: dict[str, float] = {}
    for test in {test.id: test for test in tests}.values():
        unit = unit_of(test.id)
        if unit.startswith(QUICK_CORPUS):
            continue
        took[unit] = took.get(unit, 0.0) + test.seconds
    kept = {unit: seconds for unit, seconds in recorded().items() if (ROOT / unit.partition("::")[0]).is_file()}
    merged = {unit: round(seconds, 1) for unit, seconds in (kept | took).items()}
    DURATIONS.write_text(json.dumps(merged, indent=0, sort_keys=True) + "\n")
