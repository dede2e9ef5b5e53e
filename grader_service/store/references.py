"""Which artifacts something refers to: submissions to theirs, runs that are not done to the sources of their probes."""

from collections.abc import Collection

from sqlalchemy import String, cast, select

from grader_service.store.engine import Store
from grader_service.store.tables import RunRow, RunState, SubmissionRow

_ENDED = (RunState.DONE.value, RunState.CANCELLED.value)


def unreferenced(store: Store, digests: Collection[str]) -> set[str]:
    """Those of these artifacts to which nothing refers.

    Args:
        store: of the submissions.
        digests: SHA-256 each.

    Raises:
        StoreUnavailable: the database failed.
    """
    with store.transaction() as connection:
        handed_in = select(SubmissionRow.sha256).where(SubmissionRow.sha256.in_(digests)).distinct()
        left = set(digests) - set(connection.execute(handed_in).scalars())
        # One by one, since few are left and each is looked for in the plans of all runs that wait.
        for digest in sorted(left):
            planned = cast(RunRow.plan, String).contains(digest)
            statement = select(RunRow.run_id).where(RunRow.state.not_in(_ENDED), planned).limit(1)
            if connection.execute(statement).first() is not None:
                left.remove(digest)
    return left
