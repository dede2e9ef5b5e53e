"""Finds what fell out of everybody's hands: expired leases, and runs whose wake-up was lost."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, or_, select, update

from grader_service.retry_policy import RetryPolicy
from grader_service.store import devices
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.lease import Lease, Stage
from grader_service.store.leases import settle_failure
from grader_service.store.one_by_one import one_by_one, tell
from grader_service.store.regrade_items import hold_batches
from grader_service.store.tables import Purpose, RunRow, RunState, written

_STAGE: dict[str, Stage] = {RunState.RUNNING.value: "run", RunState.JUDGING.value: "judge"}
_WAITING: dict[str, Stage] = {RunState.RUN_QUEUED.value: "run", RunState.JUDGE_QUEUED.value: "judge"}
_FROM = {stage: written(RunState(state)) for state, stage in _WAITING.items()}
_BATCH = 500


@dataclass(frozen=True)
class WakeUp:
    """A run that waits and should be announced on the queue."""

    run_id: str
    stage: Stage
    purpose: Purpose


def expire_leases(store: Store, policy: RetryPolicy) -> int:
    """Takes back runs whose worker is gone; returns how many. Bounded tries, then an operator's attention.

    A run whose device was found unfit meanwhile is not handed to another one.

    Raises:
        RowsLeft: some could not be taken back; all others were.
        StoreUnavailable: the database failed.
    """
    expired = (
        select(
            RunRow.run_id,
            RunRow.submission_id,
            RunRow.state,
            RunRow.fence,
            RunRow.attempts,
            RunRow.lease_owner,
            RunRow.item_id,
        )
        .where(RunRow.lease_until.is_not(None), RunRow.lease_until < db_now(), RunRow.state.in_(_STAGE))
        .order_by(RunRow.priority, RunRow.cohort)  # in which their cohorts are charged
        .limit(_BATCH)
    )
    with store.transaction() as connection:
        found = connection.execute(expired).all()
        # Before the runs, as everywhere: operators and erasures lock a batch before its runs, too.
        hold_batches(connection, [row.item_id for row in found if row.item_id is not None])
        still = expired.where(RunRow.run_id.in_([row.run_id for row in found]))
        rows = connection.execute(still.with_for_update(skip_locked=True)).all()
        unfit = devices.quarantined(connection) if rows else set()

        def take_back(row: Row[Any]) -> None:
            lease = Lease(
                row.run_id,
                row.submission_id,
                _STAGE[row.state],
                row.fence,
                row.lease_owner or "unknown",
                row.attempts,
                item_id=row.item_id,
            )
            error = f"{lease.owner} stopped renewing its lease while {row.state}"
            lost_device = lease.stage == "run" and (device := devices.device_of(lease.owner)) in unfit
            if lost_device:
                error = f"{error}, and {device} was taken out of service"
            settle_failure(connection, lease, error, policy, retryable=not lost_device)

        left = one_by_one(connection, rows, take_back, lambda row: row.run_id)
    tell(left, "runs whose lease ended")
    return len(rows)


def to_announce(
    store: Store, *, silent_s: float | None, limit: int = _BATCH, holding: Collection[tuple[Stage, str]] = ()
) -> list[WakeUp]:
    """Waiting runs that are due and need a wake-up; marks them as announced, so that nobody else announces them too.

    Args:
        silent_s: a run that was announced this long ago needs one again; None: only runs that never had one.
        holding: stages and purposes whose queue still holds wake-ups. Those lead to every waiting run, so none is sent
            again: a long backlog must not fill the broker.
    """
    needed: ColumnElement[bool] = RunRow.published_at.is_(None)
    if silent_s is not None:
        silent: list[ColumnElement[bool]] = [RunRow.published_at < db_now() - silent_s]
        silent += [~((RunRow.state == _FROM[stage]) & (RunRow.purpose == purpose)) for stage, purpose in holding]
        needed = or_(needed, and_(*silent))
    due = (
        select(RunRow.run_id, RunRow.state, RunRow.purpose)
        .where(or_(*(RunRow.state == state for state in _FROM.values())), RunRow.not_before <= db_now(), needed)
        .order_by(RunRow.priority, RunRow.created_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    with store.transaction() as connection:
        rows = connection.execute(due).all()
        if rows:
            connection.execute(
                update(RunRow).where(RunRow.run_id.in_([row.run_id for row in rows])).values(published_at=db_now())
            )
    return [WakeUp(row.run_id, _WAITING[row.state], row.purpose) for row in rows]


def not_announced(store: Store, run_ids: Collection[str]) -> None:
    """Wake-ups for these runs were not sent after all, or not heard: the next look should send them."""
    with store.transaction() as connection:
        connection.execute(update(RunRow).where(RunRow.run_id.in_(run_ids)).values(published_at=None))
