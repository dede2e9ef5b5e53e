"""The way of a submission: accept, claim, run, judge, answer.

The service goes it in several processes, and what there is so far waits in the store:

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

Whoever leaves something in the store sends a wake-up for what comes next (`queue.wake_ups`); the sweeper of any worker
sends one again that was lost. `local.grade`, which is `grader grade`, goes from run to judge in one process, by the
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
    FAILED = "failed"
    """Ours: tried again or dead-lettered."""
    LOST = "lost"
    """Somebody else has the run now."""
    CLOSED = "closed"
    """The worker may not take runs now; nothing was claimed."""
    GIVEN_BACK = "given_back"
    """What the work needs is not there, which shows before any code of the learner's is started; it is as if nothing
    was claimed."""


class NotNow(Exception):
    """What the work needs is not there; the run is given back, and nothing is counted."""


class Work(Protocol):
    """One stage of one run."""

    def do(self) -> Callable[[], bool]:
        """Does it.

        Returns:
            Stores what came of it; false where the lease has an old fence.

        Raises:
            NotNow: it cannot be done here now.
            GraderError: an infrastructure failure.
        """
        ...

    def abort(self) -> object:
        """Has `do` end soon; from another thread."""
        ...


class StageDeps(Protocol):
    """What a stage needs; of the dependencies of a runner or judge."""

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
    """Claims the run that should come next, does a stage of it while its lease is renewed, and stores what came of it.

    Args:
        take_on: prepares the work under a lease; raises nothing.
        limit_s: work that takes this long hangs, and is aborted.
        without_labs: see `leases.claim`, as for `preflights_only`.

    Raises:
        StoreUnavailable: the database failed, when claiming or for ten minutes; a lease will run out.
        BaseException: a signal to stop; the run was given back before it goes on.
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
            keep = work.do()
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
        if not patiently(keep):
            log.warning("fenced_off", fence=lease.fence)
            return StageEnd.LOST
        log.info("stored", fence=lease.fence)
        return StageEnd.STORED


def _fail(deps: StageDeps, lease: Lease, error: GraderError) -> StageEnd:
    state = leases.fail(deps.store, lease, f"{type(error).__name__}: {error}", deps.retry, retryable=error.retry)
    trace = error.traceback if isinstance(error, JudgeFailed) else ""
    log.error("failed", error=str(error)[:500], state=state, traceback_of_check=trace)
    return StageEnd.FAILED if state is not None else StageEnd.LOST
