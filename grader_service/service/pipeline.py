"""The way of a submission: accept, claim, run, judge, answer.

A submission passes through several processes; between them its state is in the store:

======  ================================================  ==========================================  ==============
stage   done by                                           leaves in the store                         state of a run
======  ================================================  ==========================================  ==============
accept  `intake.receive_all`, in `grader worker judge`    submission, run, its plan, the lab          run_queued
claim   `advance`, in the worker that does the next two   a lease with a fence                        running
run     `runner.run_next`, in `grader worker run`         evidence, or a rejection                    judge_queued
claim   `advance` again                                   a lease with a fence                        judging
judge   `judge.judge_next`, in `grader worker judge`      a signed verdict, and its answers: outbox   done
answer  `queue.outbox_relay`, in `grader worker judge`    when each was delivered                     done
======  ================================================  ==========================================  ==============

Whoever leaves something in the store sends a wake-up for what comes next (`queue.wake_ups`); if it is lost, the sweeper
of any worker sends another. `local.grade`, which is `grader grade`, goes from run to judge in one process, by the
same functions as the workers: `run.execution.execute` and `verdict_making.verdict_on`.
"""

import contextlib
from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from typing import Protocol

import structlog

from grader_service.errors import GraderError, InfrastructureError, JudgeFailed, StoreUnavailable
from grader_service.retry_policy import RetryPolicy
from grader_service.service.lease_heartbeat import LeaseHeartbeat
from grader_service.service.patience import patiently
from grader_service.store import leases
from grader_service.store.engine import Store
from grader_service.store.lease import Lease, Stage

log = structlog.get_logger(__name__)


class StageEnd(StrEnum):
    """What became of a lease."""

    NOTHING = "nothing"
    """No run waited."""
    STORED = "stored"
    """Evidence, a rejection or a verdict was stored."""
    FAILED = "failed"
    """An infrastructure failure: tried again or dead-lettered."""
    LOST = "lost"
    """The lease no longer holds: it expired, or an operator cancelled the run. Nothing was stored."""
    CLOSED = "closed"
    """The worker may not take runs now; nothing was claimed."""
    GIVEN_BACK = "given_back"
    """It cannot be done here now: the run waits again, and nothing is counted. A runner does this only before it starts
    any code of the learner's."""


class NotNow(Exception):
    """The work cannot be done here now; the run is given back, and nothing is counted."""


class Work(Protocol):
    """One stage of one run."""

    def do(self) -> Callable[[], bool]:
        """Does the work of the stage, but stores nothing.

        Returns:
            A function that stores the result; it may be called again while the database is away. False: the lease no
            longer holds, and nothing was stored.

        Raises:
            NotNow: it cannot be done here now.
            GraderError: an infrastructure failure; its class says whether the run is tried again. Any other exception
                is logged as a defect, and the run is tried again.
        """
        ...

    def abort(self) -> object:
        """Makes `do` end soon; called by another thread."""
        ...


class StageDeps(Protocol):
    """What every stage needs; `RunnerDeps` and `JudgeDeps` have it."""

    @property
    def store(self) -> Store: ...  # noqa: D102

    @property
    def owner(self) -> str: ...  # noqa: D102

    @property
    def lease_s(self) -> float: ...  # noqa: D102

    @property
    def retry(self) -> RetryPolicy: ...  # noqa: D102


def advance(
    stage: Stage,
    deps: StageDeps,
    take_on: Callable[[Lease], Work],
    *,
    limit_s: float = float("inf"),
    without_labs: Collection[str] = (),
    preflights_only: bool = False,
) -> StageEnd:
    """Claims the run that should come next, does one stage of it while its lease is renewed, and stores the result.

    The heartbeat of the lease calls `Work.abort` from its own thread when the lease is lost or the work takes too long.
    A worker that is killed says nothing: its lease expires, and a sweeper counts an infrastructure failure.

    Args:
        deps: of this worker.
        take_on: makes the work from a lease. It must not raise: the run would be held until its lease expires.
        limit_s: seconds after which the work counts as hung and is aborted.
        without_labs: see `leases.claim`, as for `preflights_only`.

    Raises:
        StoreUnavailable: the database failed at the claim or when a failure was recorded, or was away for ten minutes
            when a result was stored or a run given back. The lease then expires.
        BaseException: a signal to stop. The run was given back; where the database is away its lease expires.
    """
    store = deps.store
    lease = leases.claim(
        store, stage, deps.owner, deps.lease_s, without_labs=without_labs, preflights_only=preflights_only
    )
    if lease is None:
        return StageEnd.NOTHING
    work = take_on(lease)
    renew = partial(leases.renew, store, lease, deps.lease_s)
    with (
        structlog.contextvars.bound_contextvars(submission_id=lease.submission_id, run_id=lease.run_id, stage=stage),
        LeaseHeartbeat(renew, deps.lease_s, work.abort, limit_s, run_id=lease.run_id) as heartbeat,
    ):
        log.info("claimed", fence=lease.fence, attempts=lease.attempts)
        try:
            store_result = work.do()
        except NotNow as error:
            why = str(error)[:500]
            log.warning("given_back", why=why)
            back = patiently(lambda: leases.give_back(store, lease, why))
            return StageEnd.GIVEN_BACK if back else StageEnd.LOST
        except GraderError as error:
            if heartbeat.lost:
                return StageEnd.LOST
            if heartbeat.overdue and error.retry:
                error = InfrastructureError(f"the run hung: it was not done within {limit_s:g} s")
            return _fail(deps, lease, error)
        except Exception as error:
            log.exception("defect")
            return _fail(deps, lease, InfrastructureError(f"{type(error).__name__}: {error}"))
        except BaseException:
            # Told to stop (a signal becomes SystemExit): what the work started is gone by now.
            with contextlib.suppress(StoreUnavailable):  # then the lease runs out
                leases.give_back(store, lease, "the worker was told to stop")
            raise
        if not patiently(store_result):
            log.warning("fenced_off", fence=lease.fence)
            return StageEnd.LOST
        log.info("stored", fence=lease.fence)
        return StageEnd.STORED


def _fail(deps: StageDeps, lease: Lease, error: GraderError) -> StageEnd:
    state = leases.fail(deps.store, lease, f"{type(error).__name__}: {error}", deps.retry, retryable=error.retry)
    trace = error.traceback if isinstance(error, JudgeFailed) else ""
    log.error("failed", error=str(error)[:500], state=state, traceback_of_check=trace)
    return StageEnd.FAILED if state is not None else StageEnd.LOST
