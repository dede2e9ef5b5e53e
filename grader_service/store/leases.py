"""Claims, renews and returns runs. Each lease has a higher fence; writes of older ones are refused."""

import time
from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from grader_service.model.base import neutralise
from grader_service.retry_policy import Retry, RetryPolicy
from grader_service.store import devices, regrade_items
from grader_service.store.advisory_locks import AdvisoryLock
from grader_service.store.clock import db_now
from grader_service.store.engine import SCHEMA, Store, oldest_version
from grader_service.store.events import record_of
from grader_service.store.fairness import charge, next_share, stand_behind
from grader_service.store.lease import Lease, Stage
from grader_service.store.tables import (
    PREFLIGHT,
    PRIORITY,
    RunRow,
    RunState,
    SubmissionRow,
    table_of,
    written,
)
from grader_service.store.workers import tried_here

_FROM: dict[Stage, RunState] = {"run": RunState.RUN_QUEUED, "judge": RunState.JUDGE_QUEUED}
_TO: dict[Stage, RunState] = {"run": RunState.RUNNING, "judge": RunState.JUDGING}
_LOOKS = 5
_LOCKED_S = 0.02
"""How long others may hold the row of a waiting run: to announce it, or because a run of its learner ends."""
_ONE_CLAIMS = select(
    func.pg_advisory_xact_lock(AdvisoryLock.CLAIM.value),
    # A plan that was made while few runs waited is kept, and must do when 100,000 do: it reads indexes in their order.
    func.set_config("plan_cache_mode", "force_generic_plan", literal_column("true")),
    func.set_config("enable_sort", "off", literal_column("true")),
)


def claim(
    store: Store,
    stage: Stage,
    owner: str,
    lease_s: float,
    *,
    without_labs: Collection[str] = (),
    preflights_only: bool = False,
) -> Lease | None:
    """Claims the run that should come next: preflights, then live, then regrade, one at a time per learner.

    Runs that wait for a runner are taken by the shares of their cohorts and the turns of their learners (`fairness`),
    those that wait for a judge in the order in which they came.

    A run that failed on the claimer's host is left to another one, while one is ready that could take it.

    Args:
        owner: who claims, for the audit trail; a runner is `host/device/instance`.
        lease_s: how long the lease holds unless it is renewed.
        without_labs: ids of labs whose runs are left to others.
        preflights_only: whether all but preflights are left to others.

    Raises:
        StoreUnavailable: the database failed.
    """
    skips_labs = bool(without_labs)
    values: dict[str, object] = {"owner": owner, "lease_s": lease_s}
    if stage == "run":
        values |= {"host": devices.host_of(owner), "device": devices.device_of(owner)}
    if skips_labs:
        values["without_labs"] = tuple(without_labs)
    claiming = _claiming(stage, sqlite=store.is_sqlite, skips_labs=skips_labs, preflights_only=preflights_only)
    one_waits = _one_waits(stage, skips_labs=skips_labs, preflights_only=preflights_only)
    for _ in range(_LOOKS):
        with store.transaction() as connection:
            if oldest_version(connection) > SCHEMA:
                return None  # the schema is newer than this version: newer workers claim
            if stage == "run" and not store.is_sqlite:
                # One after another, or several would want the runs of the learner whose turn it is.
                connection.execute(_ONE_CLAIMS)
            row = connection.execute(claiming, values).mappings().one_or_none()
            if row is not None:
                found = Lease(stage=stage, owner=owner, **row)
                record_of(connection, f"{stage}_claimed", found, fence=found.fence)
                return found
            if store.is_sqlite or connection.execute(one_waits, values).first() is None:
                return None
        # The row is locked and was skipped, perhaps while it is announced: this may be its only wake-up, so look again.
        time.sleep(_LOCKED_S)
    return None


@cache
def _claiming(stage: Stage, *, sqlite: bool, skips_labs: bool, preflights_only: bool) -> ReturningUpdate[Any]:
    """The statement of a claim; made once, since putting it together takes as long as executing it."""
    run = table_of(RunRow).c
    conditions = _claimable(stage, skips_labs=skips_labs, preflights_only=preflights_only)
    next_one = select(run.run_id).where(*conditions).limit(1)
    changes: dict[str, Any] = {}
    if stage == "run":
        share = next_share(conditions)
        # Each by itself: so both are known before the index is read, in whose order the run stands.
        for name in ("priority", "cohort"):
            next_one = next_one.where(run[name] == select(share.c[name]).scalar_subquery())
        next_one = next_one.order_by(run.turn, run.created_at)
        changes["virtual_start"] = select(share.c.start).scalar_subquery()
    else:
        next_one = next_one.order_by(run.priority, run.created_at)
    if not sqlite:
        next_one = next_one.with_for_update(skip_locked=True)
    return (
        update(table_of(RunRow))
        .where(run.run_id == next_one.scalar_subquery())
        .values(
            **changes,
            state=_TO[stage].value,
            fence=run.fence + 1,
            lease_owner=bindparam("owner"),
            lease_until=db_now() + bindparam("lease_s", type_=Float),
            started_at=db_now(),
        )
        .returning(
            run.run_id,
            run.submission_id,
            run.fence,
            run.attempts,
            run.plan,
            run.item_id,
            run.cancelled,
            run.purpose,
        )
    )


@cache
def _one_waits(stage: Stage, *, skips_labs: bool, preflights_only: bool) -> Select[tuple[str]]:
    """A run that could be claimed, locked or not."""
    conditions = _claimable(stage, skips_labs=skips_labs, preflights_only=preflights_only)
    return select(table_of(RunRow).c.run_id).where(*conditions).limit(1)


def _claimable(stage: Stage, *, skips_labs: bool, preflights_only: bool) -> list[ColumnElement[bool]]:
    run = table_of(RunRow).c
    conditions: list[ColumnElement[bool]] = [run.state == written(_FROM[stage]), run.not_before <= db_now()]
    if stage == "run":
        other = table_of(RunRow).alias("other").c
        busy = (
            select(other.run_id).where(other.learner == run.learner, other.state == written(RunState.RUNNING)).exists()
        )
        conditions += [~busy, run.failed_host.is_(None) | ~tried_here()]
    if preflights_only:
        conditions.append(run.priority == literal_column(str(PRIORITY[PREFLIGHT]), Integer))
    if skips_labs:
        submission = table_of(SubmissionRow).c
        refused = submission.lab.in_(bindparam("without_labs", expanding=True))
        conditions.append(
            ~select(submission.lab).where(submission.submission_id == run.submission_id, refused).exists()
        )
    return conditions


def renew(store: Store, lease: Lease, lease_s: float) -> bool:
    """Extends the lease; False when the run is no longer ours, so that the work must be dropped."""
    with store.transaction() as connection:
        done = connection.execute(update(RunRow).where(*held(lease)).values(lease_until=db_now() + lease_s))
        return bool(done.rowcount)


def give_back(store: Store, lease: Lease, why: str) -> bool:
    """Puts a run back without counting a try: a worker that is told to stop returns its work."""
    of_item = lease.item_id is not None and lease.stage == "run"
    with store.transaction() as connection:
        if of_item:
            regrade_items.hold_batch(connection, lease)
        if lease.stage == "run":
            stand_behind(connection, lease.run_id, lease.fence, served=False)
        done = connection.execute(
            update(RunRow)
            .where(*held(lease))
            .values(
                state=_FROM[lease.stage].value,
                lease_owner=None,
                lease_until=None,
                not_before=db_now(),
                published_at=None,
            )
        )
        if done.rowcount:
            if of_item:
                regrade_items.spend(connection, lease.run_id, lease.item_id)
                regrade_items.requeued(connection, lease)
            record_of(connection, "given_back", lease, why=why)
            if lease.stage == "run":
                charge(connection, lease.run_id)
        return bool(done.rowcount)


def fail(store: Store, lease: Lease, error: str, policy: RetryPolicy, *, retryable: bool = True) -> RunState | None:
    """Records an infrastructure failure: the run is tried again after a delay, or dead-lettered.

    Args:
        retryable: whether that can help.

    Returns:
        The run's new state; None when it is no longer ours.
    """
    with store.transaction() as connection:
        return settle_failure(connection, lease, error, policy, retryable=retryable)


def settle_failure(
    connection: Connection, lease: Lease, error: str, policy: RetryPolicy, *, retryable: bool = True
) -> RunState | None:
    """`fail`, inside a transaction of the caller's."""
    needed = lease.item_id is None or regrade_items.hold_batch(connection, lease)
    attempts = lease.attempts + 1
    changes: dict[str, Any] = {}
    decision = policy.decide(attempts, retryable=retryable)
    if isinstance(decision, Retry):
        state = _FROM[lease.stage]
        changes["not_before"] = db_now() + decision.after_s
    else:
        # A run that its batch has given up is cancelled: no operator could do anything about it.
        state = RunState.NEEDS_ATTENTION if needed else RunState.CANCELLED
    if lease.stage == "run":
        stand_behind(connection, lease.run_id, lease.fence, served=False)
        changes |= {"failed_host": devices.host_of(lease.owner), "failed_device": devices.device_of(lease.owner)}
    done = connection.execute(
        update(RunRow)
        .where(*held(lease))
        .values(
            **changes,
            state=state.value,
            attempts=attempts,
            lease_owner=None,
            lease_until=None,
            last_error=neutralise(error[:4000]),
            published_at=None,
            finished_at=db_now() if state is RunState.CANCELLED else None,
        )
    )
    if not done.rowcount:
        return None
    if lease.item_id is not None:
        regrade_items.run_failed(connection, lease, error, dead_lettered=state is RunState.NEEDS_ATTENTION)
        if state is RunState.RUN_QUEUED:
            regrade_items.requeued(connection, lease)
    kind = "needs_attention" if state is RunState.NEEDS_ATTENTION else "failed_by_us"
    record_of(connection, kind, lease, attempts=attempts, error=neutralise(error[:1000]))
    if lease.stage == "run":
        charge(connection, lease.run_id)
    return state


def failed_here(store: Store, run_id: str, owner: str) -> bool:
    """Whether a run failed last on the host of this runner, so that it may be left to another."""
    with store.transaction() as connection:
        found = connection.execute(select(RunRow.failed_host).where(RunRow.run_id == run_id)).scalar_one_or_none()
    return found is not None and found == devices.host_of(owner)


def held(lease: Lease) -> tuple[ColumnElement[bool], ...]:
    """Conditions under which this lease may still write."""
    return (
        RunRow.run_id == lease.run_id,
        RunRow.fence == lease.fence,
        RunRow.state == _TO[lease.stage].value,
    )
