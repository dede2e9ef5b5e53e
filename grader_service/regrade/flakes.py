"""The flake ledger: which checks come out differently although nothing but the repetition differs; pure.

The interval of a rate is that of E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
Journal of the American Statistical Association 22 (1927), 209-212: it stays inside [0, 1] and holds for few or no
varying submissions, where the usual ± of the normal distribution closes to a point.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean, median, stdev

from grader_service.model.diff import FlakeRow, Flakes, Result, ResultCount, Spread, Unsteady
from grader_service.model.regrade import Change
from grader_service.model.verdict_summary import VerdictSummary
from grader_service.regrade.filters import ABSENT

MOST_UNSTEADY = 200
"""Submissions that the ledger names; the rest is counted."""
_Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: 95 % in between."""
_MOST_CV = 1e6
_Key = tuple[str, str, str] | None
"""Lab, step and check; None for the status."""


def wilson(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate; (0, 1) where nothing was counted."""
    if of == 0:
        return 0.0, 1.0
    rate, z2 = hits / of, _Z * _Z
    centre = rate + z2 / (2 * of)
    half = _Z * math.sqrt(rate * (1 - rate) / of + z2 / (4 * of * of))
    low, high = (centre - half) / (1 + z2 / of), (centre + half) / (1 + z2 / of)
    # At the ends the formula gives 0 and 1 exactly, but for rounding.
    return (0.0 if hits == 0 else max(0.0, low)), (1.0 if hits == of else min(1.0, high))


def flakes_of(repeats: int, changes: Iterable[Change]) -> Flakes:
    """The ledger of a whole batch that asked for so many repetitions."""
    tally = FlakeTally(repeats)
    for change in changes:
        tally.add(change)
    return tally.flakes()


class _Counts:
    """What is counted of one check, or of the status."""

    def __init__(self) -> None:
        self.submissions = 0
        self.varying = 0
        self.rescored = 0
        self.results: Counter[Result] = Counter()


class FlakeTally:
    """Counts over submissions that come one by one; keeps eight bytes a measured value, and bounded lists."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._submissions = 0
        self._varying = 0
        self._counts: dict[_Key, _Counts] = {None: _Counts()}
        self._unsteady: list[Unsteady] = []
        self._beyond = 0
        self._spreads: dict[str, array[float]] = {}

    def add(self, change: Change) -> None:
        """Counts one submission; one with fewer than two repetitions says nothing here."""
        repeats = change.repeats
        if len(repeats) < 2:
            return
        self._submissions += 1
        varies = self._count(change, None, [s.status.value for s in repeats], [s.score for s in repeats])
        seen = [{(c.step, c.id): c for c in summary.checks} for summary in repeats]
        for step, check in dict.fromkeys(key for checks in seen for key in checks):
            found = [checks.get((step, check)) for checks in seen]
            outcomes: list[Result] = [ABSENT if item is None else item.outcome.value for item in found]
            points = [None if item is None else item.score for item in found]
            varies |= self._count(change, (change.old.lab, step, check), outcomes, points)
        self._varying += varies
        self._measure(repeats)

    def flakes(self) -> Flakes:
        """The ledger of what was counted."""
        status, *checks = ((key, counts) for key, counts in self._counts.items())
        checks.sort(key=lambda item: -item[1].varying / item[1].submissions)
        return Flakes(
            repeats=self._repeats,
            submissions=self._submissions,
            varying=self._varying,
            rows=tuple(_row(key, counts) for key, counts in (status, *checks)),
            unsteady=tuple(self._unsteady),
            unsteady_beyond=self._beyond,
            spreads=tuple(_spread(value, found) for value, found in self._spreads.items()),
        )

    def _count(self, change: Change, key: _Key, outcomes: Sequence[Result], points: Sequence[float | None]) -> bool:
        counts = self._counts.setdefault(key, _Counts())
        counts.submissions += 1
        different = set(outcomes)
        if len(different) == 1:
            counts.rescored += len(set(points)) > 1
            return False
        counts.varying += 1
        counts.results.update(different)
        if len(self._unsteady) < MOST_UNSTEADY:
            _, step, check = key or (None, None, None)
            self._unsteady.append(
                Unsteady(
                    submission_id=change.submission_id,
                    learner=change.old.learner,
                    step=step,
                    check=check,
                    outcomes=tuple(outcomes),
                )
            )
        else:
            self._beyond += 1
        return True

    def _measure(self, repeats: Sequence[VerdictSummary]) -> None:
        values = {"ratio": [s.ratio.ratio for s in repeats if s.ratio is not None]}
        for arm in dict.fromkeys(arm for s in repeats for arm in s.rates):
            values[arm] = [s.rates[arm].median for s in repeats if arm in s.rates]
        for value, measured in values.items():
            if len(measured) > 1:
                cv = stdev(measured) / mean(measured)
                self._spreads.setdefault(value, array("d")).append(min(cv, _MOST_CV))


def _row(key: _Key, counts: _Counts) -> FlakeRow:
    lab, step, check = key or (None, None, None)
    low, high = wilson(counts.varying, counts.submissions)
    return FlakeRow(
        lab=lab,
        step=step,
        check=check,
        submissions=counts.submissions,
        varying=counts.varying,
        rate=counts.varying / counts.submissions if counts.submissions else 0.0,
        low=low,
        high=high,
        rescored=counts.rescored,
        results=tuple(
            ResultCount(result=result, submissions=n)
            for result, n in sorted(counts.results.items(), key=lambda item: (-item[1], item[0]))
        ),
    )


def _spread(value: str, found: Iterable[float]) -> Spread:
    ordered = sorted(found)
    return Spread(
        value=value[:200],
        submissions=len(ordered),
        median=median(ordered),
        # The nearest rank: a value that was seen, and the highest of fewer than twenty.
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        highest=ordered[-1],
    )
