"""What a batch changes, told in one pass over its submissions; pure.

Memory does not grow with the texts of a batch: what is kept is counters, eight bytes a score, and as many submissions
as the lists name.
"""

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import fsum
from statistics import median
from typing import get_args

from grader_service.model.diff import (
    CHANGED,
    COMPARED,
    SCORE_BINS,
    CheckDiff,
    CodeDiff,
    Diff,
    Filter,
    Kind,
    Mover,
    Reason,
    Result,
    Scores,
    StepDiff,
    Transition,
    VersionSeen,
)
from grader_service.model.regrade import Batch, Change, Progress
from grader_service.model.verdict import Mode, StepVerdict
from grader_service.model.verdict_summary import VerdictSummary
from grader_service.regrade.filters import ABSENT, differ, in_scope, lost_a_decision, paired, result_of, rows_of
from grader_service.regrade.flakes import FlakeTally

MOST_LISTED = 200
"""Newly failing submissions, codes, and versions of one check that a diff names; the newly failing are counted too."""
_MOST_SHARE = 1e6
_ORDER: dict[Result, int] = {result: index for index, result in enumerate(get_args(Result))}
_StepKey = tuple[str, str]
_CheckKey = tuple[str, str, str]


def diff_of(
    batch: Batch,
    progress: Progress,
    changes: Iterable[Change],
    *,
    movers: int = 50,
    chosen: Filter | None = None,
    counted: Callable[[Kind, Change], object] | None = None,
) -> Diff:
    """The diff of a batch.

    Args:
        changes: its submissions, each once; read one at a time.
        movers: so many of the biggest movers are named.
        chosen: only submissions of this filter are counted, and of their steps and checks only those that it names.
        counted: is given each submission that is counted, so that a page of them needs no second reading.
    """
    tally = _Tally(movers, chosen)
    ledger = FlakeTally(batch.repeats)
    for kind, change in rows_of(changes, chosen):
        tally.add(kind, change)
        ledger.add(change)
        if counted is not None:
            counted(kind, change)
    return tally.diff(batch, progress, ledger)


class _Part:
    """What is counted of one step or check."""

    def __init__(self) -> None:
        self.transitions: Counter[tuple[Result, Result]] = Counter()
        self.changed = 0
        self.versions: dict[str, list[int]] = {}

    def seen(self, version: str, side: int) -> None:
        self.versions.setdefault(version, [0, 0])[side] += 1

    def figures(self) -> dict[str, object]:
        found: dict[str, object] = {"transitions": _transitions(self.transitions), "changed": self.changed}
        for side, name in enumerate(("before", "after")):
            counted: Counter[Result] = Counter()
            for pair, n in self.transitions.items():
                counted[pair[side]] += n
            found[f"passed_{name}"] = counted["passed"]
            found[f"decided_{name}"] = counted["passed"] + counted["failed"]
        return found


class _Side:
    """Scores of one side."""

    def __init__(self) -> None:
        self._shares = array("d")
        self._without = 0
        self._bins = [0] * SCORE_BINS

    def add(self, share: float | None) -> None:
        if share is None:
            self._without += 1
            return
        self._shares.append(share)
        # 0.15 × 20 is a little more than 3 in floating point; others are a little less than what they mean.
        self._bins[min(SCORE_BINS - 1, int(share * SCORE_BINS + 1e-9))] += 1

    def scores(self) -> Scores:
        count = len(self._shares)
        return Scores(
            scored=count,
            without=self._without,
            mean=fsum(self._shares) / count if count else None,
            median=median(self._shares) if count else None,
            histogram=tuple(self._bins),
        )


class _Tally:
    """Counts over submissions that come one by one."""

    def __init__(self, movers: int, chosen: Filter | None) -> None:
        self._most_movers = movers
        self._chosen = chosen
        self._kinds: Counter[Kind] = Counter()
        self._statuses: Counter[tuple[Result, Result]] = Counter()
        self._sides = (_Side(), _Side())
        self._steps: defaultdict[_StepKey, _Part] = defaultdict(_Part)
        self._checks: defaultdict[_CheckKey, _Part] = defaultdict(_Part)
        self._codes: dict[tuple[str, str, str, str], list[int]] = {}
        self._moved = array("d")
        self._newer = self._by_evidence = 0
        self._rehearsals = self._other_gpu = self._ranked = 0
        self._failing: list[Mover] = []
        self._heap: list[tuple[tuple[float, bool, int], Kind, Change]] = []

    def add(self, kind: Kind, change: Change) -> None:
        """Counts one submission."""
        self._kinds[kind] += 1
        old, new = change.old, change.new
        if kind not in COMPARED or new is None:
            return
        self._statuses[old.status.value, new.status.value] += 1
        before, after = share_of(old), share_of(new)
        for side, share in zip(self._sides, (before, after), strict=True):
            side.add(share)
        if before is not None and after is not None:
            self._moved.append(after - before)
        self._rehearsals += new.mode is Mode.REHEARSAL and old.mode is not Mode.REHEARSAL
        self._other_gpu += new.gpu != old.gpu
        self._add_steps(old, new)
        self._add_checks(old, new)
        self._by_evidence += lost_a_decision(change, self._chosen)
        if kind in CHANGED:
            self._newer += change.newer > 0
            self._rank(kind, change, before, after)

    def diff(self, batch: Batch, progress: Progress, ledger: FlakeTally) -> Diff:
        """The diff of what was counted."""
        checks = tuple(
            CheckDiff(lab=lab, step=step, check=check, versions=_versions(part.versions), **part.figures())
            for (lab, step, check), part in self._checks.items()
        )
        ranked = sorted(self._heap, key=lambda item: item[0], reverse=True)
        return Diff(
            batch=batch,
            progress=progress,
            chosen=self._chosen,
            kinds={kind: self._kinds[kind] for kind in Kind},
            undecided_by_evidence=self._by_evidence,
            newer=self._newer,
            statuses=_transitions(self._statuses),
            before=self._sides[0].scores(),
            after=self._sides[1].scores(),
            mean_moved=fsum(self._moved) / len(self._moved) if self._moved else None,
            steps=tuple(StepDiff(lab=lab, step=step, **part.figures()) for (lab, step), part in self._steps.items()),
            checks=checks,
            codes=self._ranked_codes(),
            newly_failing=tuple(self._failing),
            newly_failing_beyond=self._kinds[Kind.NEWLY_FAILING] - len(self._failing),
            movers=tuple(mover_of(kind, change) for _, kind, change in ranked),
            flakes=ledger.flakes() if batch.repeats > 1 else None,
            warnings=tuple(self._warnings(checks)),
        )

    def _add_steps(self, old: VerdictSummary, new: VerdictSummary) -> None:
        gone: dict[str, StepVerdict] = {step.id: step for step in old.steps}
        pairs = [(step.id, gone.pop(step.id, None), step) for step in new.steps]
        for step_id, before, after in (*pairs, *((step.id, step, None) for step in gone.values())):
            if self._chosen is not None and self._chosen.step not in {None, step_id}:
                continue
            part = self._steps[new.lab, step_id]
            results = tuple(ABSENT if step is None else step.outcome.value for step in (before, after))
            part.transitions[results[0], results[1]] += 1
            part.changed += before != after

    def _add_checks(self, old: VerdictSummary, new: VerdictSummary) -> None:
        for (step, check), before, after in paired(old, new):
            if not in_scope(self._chosen, step, check):
                continue
            part = self._checks[new.lab, step, check]
            part.transitions[result_of(before), result_of(after)] += 1
            part.changed += differ(before, after)
            for side, item in enumerate((before, after)):
                if item is not None:
                    part.seen(item.version, side)
                    self._codes.setdefault((new.lab, step, check, item.code), [0, 0])[side] += 1

    def _rank(self, kind: Kind, change: Change, before: float | None, after: float | None) -> None:
        if kind is Kind.NEWLY_FAILING and len(self._failing) < MOST_LISTED:
            self._failing.append(mover_of(kind, change))
        moved = (after or 0.0) - (before or 0.0)
        # Losses come before gains, and the first submissions before later ones, where they moved equally far.
        self._ranked += 1
        item = ((round(abs(moved), 9), moved < 0, -self._ranked), kind, change)
        if len(self._heap) < self._most_movers:
            heapq.heappush(self._heap, item)
        elif self._heap:
            heapq.heappushpop(self._heap, item)

    def _ranked_codes(self) -> tuple[CodeDiff, ...]:
        ranked = sorted(self._codes.items(), key=lambda item: (item[1][0] - item[1][1], -item[1][1], item[0]))
        return tuple(
            CodeDiff(lab=lab, step=step, check=check, code=code, before=before, after=after)
            for (lab, step, check, code), (before, after) in ranked[:MOST_LISTED]
        )

    def _warnings(self, checks: Iterable[CheckDiff]) -> Iterator[str]:
        for found in checks:
            if found.mixed:
                versions = ", ".join(
                    f"{seen.version} ({seen.before} before, {seen.after} after)" for seen in found.versions[:5]
                )
                yield f"several versions of the check {found.check} judged on the same side: {versions}"
        if self._rehearsals:
            yield f"{self._rehearsals} new verdicts are rehearsals, which are no grades; the old ones are official"
        if self._other_gpu:
            yield f"{self._other_gpu} new verdicts come from another model of GPU than the old ones"


def mover_of(kind: Kind, change: Change) -> Mover:
    """One submission with a new verdict, and the checks that came out differently.

    Raises:
        ValueError: it has no new verdict.
    """
    old, new = change.old, change.new
    if new is None:
        raise ValueError(f"submission {change.submission_id} has no new verdict")
    before, after = share_of(old), share_of(new)
    return Mover(
        submission_id=change.submission_id,
        learner=old.learner,
        cohort=old.cohort,
        kind=kind,
        old_status=old.status.value,
        new_status=new.status.value,
        old_score=old.score,
        new_score=new.score,
        old_max_score=old.max_score,
        new_max_score=new.max_score,
        moved=after - before if before is not None and after is not None else None,
        reasons=tuple(
            Reason(
                step=step,
                check=check,
                old=result_of(was),
                new=result_of(now),
                old_code=was.code if was is not None else None,
                new_code=now.code if now is not None else None,
                old_score=was.score if was is not None else None,
                new_score=now.score if now is not None else None,
            )
            for (step, check), was, now in paired(old, new)
            if differ(was, now)
        ),
        old_ratio=old.ratio,
        new_ratio=new.ratio,
    )


def share_of(summary: VerdictSummary) -> float | None:
    """The score over all points; None where there is no score, which is not 0."""
    if summary.score is None or summary.max_score is None:
        return None
    return min(_MOST_SHARE, summary.score / summary.max_score)


def _transitions(counts: Counter[tuple[Result, Result]]) -> tuple[Transition, ...]:
    ordered = sorted(counts.items(), key=lambda item: (_ORDER[item[0][0]], _ORDER[item[0][1]]))
    return tuple(Transition(old=old, new=new, submissions=n) for (old, new), n in ordered)


def _versions(versions: dict[str, list[int]]) -> tuple[VersionSeen, ...]:
    ranked = sorted(versions.items(), key=lambda item: (-sum(item[1]), item[0]))
    return tuple(VersionSeen(version=version, before=b, after=a) for version, (b, a) in ranked[:MOST_LISTED])
