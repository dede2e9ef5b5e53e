"""Runs again what judging could not decide: evidence may say little about a threshold that its run did not aim at."""

from grader_service.errors import UsageError
from grader_service.model.regrade import Change, Level
from grader_service.model.standing import CheckStanding
from grader_service.model.verdict import Outcome
from grader_service.store import regrades
from grader_service.store.engine import Store
from grader_service.store.regrade_states import run_instead

REASON = "evidence.undecided"


def lost_a_decision(change: Change) -> bool:
    """Whether a check that stored evidence decided before is undecided by it now."""
    if change.level is not Level.JUDGE or change.new is None:
        return False
    before = {(check.step, check.id): check for check in change.old.checks}
    return any(
        check.outcome is Outcome.INCONCLUSIVE and not _inconclusive(before.get((check.step, check.id)))
        for check in change.new.checks
    )


def escalate(store: Store, batch_id: str, actor: str, *, gpu_budget_s: float | None = None) -> int:
    """Gives those items of a finished batch a run each, in place of their verdict; returns how many submissions.

    Raises:
        UsageError: the batch is not finished, or none of its submissions needs it.
    """
    chosen = [change.submission_id for change in regrades.changes(store, batch_id) if lost_a_decision(change)]
    if not chosen:
        raise UsageError(f"every check that was decided before is decided in batch {batch_id}; there is nothing to run")
    run_instead(store, batch_id, chosen, REASON, actor, gpu_budget_s=gpu_budget_s)
    return len(chosen)


def _inconclusive(check: CheckStanding | None) -> bool:
    return check is not None and check.outcome is Outcome.INCONCLUSIVE
