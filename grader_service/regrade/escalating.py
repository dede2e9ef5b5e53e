"""Runs again what judging could not decide: evidence may say little about a threshold that its run did not aim at."""

from grader_service.errors import UsageError
from grader_service.regrade.filters import lost_a_decision
from grader_service.store import regrades
from grader_service.store.engine import Store
from grader_service.store.references import with_artifact
from grader_service.store.regrade_states import run_instead

REASON = "evidence.undecided"


def escalate(store: Store, batch_id: str, actor: str, *, gpu_budget_s: float | None = None) -> int:
    """Gives those items of a finished batch a run each, in place of their verdict; returns how many submissions.

    They are those that the batch's diff counts as left open by stored evidence.

    Raises:
        UsageError: the batch is not finished, none of its submissions needs it, or none of those has its artifact.
    """
    chosen = [change.submission_id for change in regrades.changes(store, batch_id) if lost_a_decision(change)]
    if not chosen:
        raise UsageError(
            f"every check that was decided before is decided in batch {batch_id}, or another verdict came in force "
            "meanwhile; there is nothing to run"
        )
    chosen = with_artifact(store, chosen)
    if not chosen:
        raise UsageError(f"nothing can be run: of no such submission of batch {batch_id} the artifact is kept any more")
    run_instead(store, batch_id, chosen, REASON, actor, gpu_budget_s=gpu_budget_s)
    return len(chosen)
