"""What a batch means for one submission, and whether a filter chooses it; pure."""

from collections.abc import Iterable, Iterator

from grader_service.model.diff import CHANGED, Filter, Kind, Result
from grader_service.model.regrade import Change, ItemState, Level
from grader_service.model.verdict import Outcome, Status
from grader_service.model.verdict_summary import CheckSummary, VerdictSummary

ABSENT: Result = "absent"
_OPEN = {ItemState.NEEDS_ATTENTION: Kind.NEEDS_ATTENTION, ItemState.CANCELLED: Kind.CANCELLED}
_FAILING = frozenset({Status.FAILED, Status.REJECTED})
_DECIDED = _FAILING | {Status.PASSED}
_SAYS = frozenset({Outcome.PASSED, Outcome.FAILED})
"""Outcomes of a check that decide."""
Paired = tuple[tuple[str, str], CheckSummary | None, CheckSummary | None]
"""Step and check; what it was before and what it is now, None on the side that lacks it."""


def kind_of(change: Change) -> Kind:
    """The kind of one submission; without a new verdict it is open, however outdated."""
    if change.new is None:
        return _OPEN.get(change.state, Kind.PENDING)
    if change.outdated:
        return Kind.OUTDATED
    if not change.changed:
        return Kind.UNCHANGED
    old, new = change.old.status, change.new.status
    if new in _FAILING and old not in _FAILING:
        return Kind.NEWLY_FAILING
    if new is Status.PASSED and old is not Status.PASSED:
        return Kind.NEWLY_PASSING
    if old in _DECIDED and new not in _DECIDED:
        return Kind.NEWLY_UNDECIDED
    return Kind.OTHERWISE_CHANGED


def rows_of(changes: Iterable[Change], chosen: Filter | None = None) -> Iterator[tuple[Kind, Change]]:
    """Each submission that the filter chooses, with its kind, in the order given and one at a time."""
    for change in changes:
        kind = kind_of(change)
        if chosen is None or matches(change, kind, chosen):
            yield kind, change


def matches(change: Change, kind: Kind, chosen: Filter) -> bool:
    """Whether all conditions of the filter hold."""
    if chosen.kinds and kind not in chosen.kinds:
        return False
    learner = change.old.learner or ""
    if chosen.learner is not None and learner != chosen.learner:
        return False
    if chosen.text:
        wanted = chosen.text.casefold()
        if wanted not in change.submission_id.casefold() and wanted not in learner.casefold():
            return False
    if chosen.code is not None and not _gives(change.new, chosen.code):
        return False
    return _part_matches(change, kind, chosen)


def in_scope(chosen: Filter | None, step: str, check: str) -> bool:
    """Whether figures of this check are asked for."""
    return chosen is None or (chosen.step in {None, step} and chosen.check in {None, check})


def paired(old: VerdictSummary, new: VerdictSummary) -> Iterator[Paired]:
    """The checks of two verdicts beside each other, in the order of the new one, then those that are gone."""
    before = {(check.step, check.id): check for check in old.checks}
    for check in new.checks:
        key = (check.step, check.id)
        yield key, before.pop(key, None), check
    for key, gone in before.items():
        yield key, gone, None


def result_of(part: CheckSummary | None) -> Result:
    """As what a check's outcome counts; `absent` where the verdict lacks it."""
    return ABSENT if part is None else part.counted.value


def differ(old: CheckSummary | None, new: CheckSummary | None) -> bool:
    """Whether a learner would see that a check came out differently, or with other points."""
    if old is None or new is None:
        return old is not new
    return (old.counted, old.score, old.max_score) != (new.counted, new.score, new.max_score)


def lost_a_decision(change: Change, chosen: Filter | None = None) -> bool:
    """Whether stored evidence leaves a check undecided that was decided, or absent, before: a run could tell.

    Not where the change is outdated: `apply` would leave aside what the run costs.

    Args:
        chosen: only the checks that it names are looked at.
    """
    if change.level is not Level.JUDGE or change.new is None or change.outdated:
        return False
    return any(
        after is not None and after.counted not in _SAYS and (before is None or before.counted in _SAYS)
        for (step, check), before, after in paired(change.old, change.new)
        if in_scope(chosen, step, check)
    )


def _part_matches(change: Change, kind: Kind, chosen: Filter) -> bool:
    if chosen.step is None and chosen.check is None:
        differs = kind in CHANGED or (kind is Kind.OUTDATED and change.changed)
        new: Result | None = change.new.status.value if change.new is not None else None
        return _one_matches(chosen, change.old.status.value, new, differs=differs)
    return any(_one_matches(chosen, old, new, differs=differs) for old, new, differs in _parts(change, chosen))


def _one_matches(chosen: Filter, old: Result, new: Result | None, *, differs: bool) -> bool:
    if chosen.old is not None and old != chosen.old:
        return False
    if chosen.new is not None and new != chosen.new:
        return False
    return differs or not chosen.differs


def _parts(change: Change, chosen: Filter) -> Iterator[tuple[Result, Result | None, bool]]:
    """Results before and after of what the filter names; without a new verdict the second is None."""
    if chosen.check is None:
        olds = {step.id: step for step in change.old.steps if step.id == chosen.step}
        news = {step.id: step for step in (change.new.steps if change.new else ()) if step.id == chosen.step}
        if olds or news:
            old, new = olds.get(chosen.step or ""), news.get(chosen.step or "")
            after: Result | None = None if change.new is None else ABSENT if new is None else new.outcome.value
            differs = change.new is not None and old != new
            yield ABSENT if old is None else old.outcome.value, after, differs
    elif change.new is None:
        for check in change.old.checks:
            if in_scope(chosen, check.step, check.id):
                yield result_of(check), None, False
    else:
        for (step, check_id), before, after_check in paired(change.old, change.new):
            if in_scope(chosen, step, check_id):
                yield result_of(before), result_of(after_check), differ(before, after_check)


def _gives(summary: VerdictSummary | None, code: str) -> bool:
    return summary is not None and (summary.code == code or any(check.code == code for check in summary.checks))
