"""Whose run comes next within a queue: cohorts share devices by weight, and the learners of a cohort take turns.

Cohorts: start-time fair queueing (Goyal, Vin, Cheng 1996). What counts is time on a device. A cohort's virtual time
is the seconds that its runs held devices, divided by its weight; the cohort that is furthest behind goes next. One that
had nothing to run starts at the virtual time of the others: waiting earns no credit, and use long ago is no debt.

Learners: a run stands in line from when it came. Once a run of its learner has held a device for `n` seconds, what else
waits of this learner, or comes, stands behind everything that comes until `n` seconds after that run.
"""

import math
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Float,
    Integer,
    RowMapping,
    Select,
    Subquery,
    and_,
    case,
    func,
    literal,
    literal_column,
    or_,
    select,
    union_all,
    update,
)

from grader_service.errors import UsageError
from grader_service.store.clock import db_now, later
from grader_service.store.engine import Store
from grader_service.store.events import record
from grader_service.store.tables import PRIORITY, RunRow, RunState, ShareRow, insert_into, table_of, written

EXPECTED_S = 60.0
"""What a run under way is taken to cost its cohort; what it did cost is known when it ends."""
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100.0


def next_share(claimable: Sequence[ColumnElement[bool]]) -> CTE:
    """One row, or none: `priority`, `cohort` and virtual `start` of the cohort whose run should be claimed next.

    Args:
        claimable: conditions on runs, in terms of `table_of(RunRow)`.
    """
    held = _held_devices()
    found: list[CTE] = []
    for priority in sorted(PRIORITY.values()):
        first = _first_of_queue(literal_column(str(priority), Integer), claimable, held)
        # The next queue is looked at only where this one has nothing.
        found.append(first.where(*(~select(one).exists() for one in found)).cte(f"first_of_{priority}"))
    return union_all(*(select(one) for one in found)).cte("next_share")


def _first_of_queue(priority: ColumnElement[int], claimable: Sequence[ColumnElement[bool]], held: CTE) -> Select[Any]:
    """That row for one queue."""
    ready = _cohorts(priority, claimable, held).c
    return (
        select(priority.label("priority"), ready.cohort, ready.start)
        .where(ready.turn.is_not(None))
        .order_by(ready.start + ready.under_way, ready.turn)
        .limit(1)
    )


def _cohorts(priority: ColumnElement[int], claimable: Sequence[ColumnElement[bool]], held: CTE) -> Subquery:
    """Cohorts that wait in a queue.

    Virtual `start` of the next run of each, what its runs `under_way` will add to that, its `weight`, and the `turn` of
    its first run that may be claimed, null where there is none.
    """
    run = table_of(RunRow).c
    waiting = _waiting_cohorts(priority)
    share = select(table_of(ShareRow)).where(table_of(ShareRow).c.priority == priority).subquery()
    ours = select(held).where(held.c.priority == priority).subquery()
    first = (
        select(run.turn)
        .where(*claimable, run.priority == priority, run.cohort == waiting.c.cohort)
        .order_by(run.turn, run.created_at)
        .limit(1)
        .correlate(waiting)
        .scalar_subquery()
    )
    weight = func.coalesce(share.c.weight, 1.0)
    return (
        select(
            waiting.c.cohort,
            later(func.coalesce(share.c.virtual_finish, 0.0), _virtual_time(share, ours)).label("start"),
            (func.coalesce(ours.c.runs, 0) * EXPECTED_S / weight).label("under_way"),
            weight.label("weight"),
            first.label("turn"),
        )
        .select_from(
            waiting.outerjoin(share, share.c.cohort == waiting.c.cohort).outerjoin(
                ours, ours.c.cohort == waiting.c.cohort
            )
        )
        .where(waiting.c.cohort.is_not(None))
        .subquery()
    )


def _waiting_cohorts(priority: ColumnElement[int]) -> CTE:
    """Each `cohort` of which runs wait: as many steps through an index as there are cohorts, however many runs."""
    run = table_of(RunRow).alias().c
    queued = select(run.cohort).where(run.state == written(RunState.RUN_QUEUED), run.priority == priority)
    least = queued.order_by(run.cohort).limit(1)
    found = select(least.scalar_subquery().label("cohort")).cte(recursive=True)
    following = least.where(run.cohort > found.c.cohort).scalar_subquery()
    return found.union_all(select(following).where(found.c.cohort.is_not(None)))


def _held_devices() -> CTE:
    """Of runs that are under way, by `priority` and `cohort`: how many `runs`, and the latest virtual `start`."""
    run = table_of(RunRow).alias().c
    return (
        select(run.priority, run.cohort, func.count().label("runs"), func.max(run.virtual_start).label("start"))
        .where(run.state == written(RunState.RUNNING))
        .group_by(run.priority, run.cohort)
        .cte("held")
    )


def _virtual_time(share: Subquery, held: Subquery) -> ColumnElement[float]:
    """That of a queue: at which the run started that was claimed last, as far as can be seen."""
    ended = select(func.max(share.c.virtual_start)).scalar_subquery()
    under_way = select(func.max(held.c.start)).scalar_subquery()
    return later(func.coalesce(ended, 0.0), func.coalesce(under_way, 0.0))


def held_s() -> ColumnElement[float]:
    """For how long a run that is under way has held its device by now."""
    return func.coalesce(db_now() - RunRow.started_at, 0.0)  # a row without a start stops no sweep


def charge(connection: Connection, run_id: str) -> None:
    """Charges a run that ends, however it ended, to its cohort: its device time moves the cohort's virtual time on.

    Call it last: the cohort's row is held until the transaction ends. Charge several runs in the order of their queues
    and cohorts.
    """
    columns = (RunRow.cohort, RunRow.priority, RunRow.virtual_start, held_s().label("held_s"))
    run = connection.execute(select(*columns).where(RunRow.run_id == run_id)).one()
    start, share = run.virtual_start or 0.0, table_of(ShareRow).c
    new = insert_into(connection, ShareRow).values(
        cohort=run.cohort, priority=run.priority, virtual_start=start, virtual_finish=start + run.held_s
    )
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[ShareRow.cohort, ShareRow.priority],
            set_={
                "virtual_start": later(share.virtual_start, literal(start, Float)),
                "virtual_finish": later(share.virtual_finish, literal(start, Float)) + run.held_s / share.weight,
            },
        )
    )


def stand_behind(connection: Connection, run_id: str, fence: int, *, served: bool) -> None:
    """A run is taken off its device: what else waits of its learner may be claimed, and needs a wake-up anew.

    Call it before the run's own row changes, since it locks the learner's waiting runs. A claim of one of these locks
    them in the same order, waiting run first; in the other order the two transactions would deadlock.

    Args:
        fence: of the lease on it; where that does not hold any more, nothing changes.
        served: whether something came of it, so that its learner goes to the end of the line.
    """
    own = select(RunRow.learner, RunRow.priority, held_s().label("held_s"))
    running = RunRow.state == written(RunState.RUNNING)
    run = own.where(RunRow.run_id == run_id, RunRow.fence == fence, running).subquery("own").c
    changes: dict[str, Any] = {"published_at": None}
    if served:
        behind = db_now() + select(run.held_s).scalar_subquery()
        of_queue = RunRow.priority == select(run.priority).scalar_subquery()
        changes["turn"] = case((of_queue, later(RunRow.turn, behind)), else_=RunRow.turn)
    connection.execute(
        update(RunRow)
        .where(RunRow.state == written(RunState.RUN_QUEUED), RunRow.learner == select(run.learner).scalar_subquery())
        .values(**changes)
    )


def runs_before(connection: Connection, one: RowMapping) -> int:
    """How many runs will probably be claimed before one that waits, given its row, if no other comes.

    Learners of its cohort take turns, and other cohorts get their shares meanwhile.
    """
    run = table_of(RunRow).c
    queued = run.state == written(RunState.RUN_QUEUED)
    line, own_line = func.coalesce(run.learner, run.run_id), one["learner"] or one["run_id"]
    earlier = or_(run.turn < one["turn"], and_(run.turn == one["turn"], run.created_at < one["created_at"]))
    ours = and_(run.priority == one["priority"], run.cohort == one["cohort"])
    urgent = select(func.count()).where(queued, run.priority < one["priority"])
    own = select(func.count()).where(queued, ours, line == own_line, earlier)
    before, rounds = (connection.execute(statement).scalar_one() for statement in (urgent, own))
    lines = (
        select(func.count().label("runs"), func.max(case((earlier, 1), else_=0)).label("first"))
        .where(queued, ours, line != own_line)
        .group_by(line)
        .subquery()
        .c
    )
    in_their_turns = case((lines.runs < lines.first + rounds, lines.runs), else_=lines.first + rounds)
    before_in_cohort = rounds + int(connection.execute(select(func.sum(in_their_turns))).scalar_one() or 0)
    counts = select(run.cohort, func.count().label("runs")).where(queued, run.priority == one["priority"])
    waiting = {row.cohort: row.runs for row in connection.execute(counts.group_by(run.cohort))}
    cohorts = _cohorts(literal_column(str(one["priority"]), Integer), [queued], _held_devices())
    shares = {row.cohort: row for row in connection.execute(select(cohorts))}
    own_share = shares.get(one["cohort"])
    if own_share is None:  # its last waiting run was claimed while we looked
        return before + before_in_cohort
    start = own_share.start + own_share.under_way + before_in_cohort * EXPECTED_S / own_share.weight
    for cohort, share in shares.items():
        if cohort != one["cohort"]:
            ahead = (start - share.start - share.under_way) * share.weight / EXPECTED_S
            first = share.turn < own_share.turn  # of two that are as far behind, the one that has waited for longer
            before += min(waiting.get(cohort, 0), max(0, math.floor(ahead) + 1 if first else math.ceil(ahead)))
    return before + before_in_cohort


def weights(store: Store) -> dict[str, float]:
    """Weights of cohorts that have one or have run something; others weigh 1."""
    with store.transaction() as connection:
        known = select(ShareRow.cohort, ShareRow.weight).where(ShareRow.priority == PRIORITY["live"])
        return {row.cohort: row.weight for row in connection.execute(known)}


def set_weight(store: Store, cohort: str, weight: float, actor: str) -> None:
    """Gives a cohort a larger or a smaller share of the devices, in both queues, from now on.

    Args:
        cohort: empty for submissions without one.
        weight: its share, in terms of that of a cohort that weighs 1.

    Raises:
        UsageError: no weight is like that.
    """
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise UsageError(f"a weight is a number from {LEAST_WEIGHT} to {MOST_WEIGHT:g}, got {weight:g}")
    with store.transaction() as connection:
        for priority in sorted(PRIORITY.values()):
            new = insert_into(connection, ShareRow).values(cohort=cohort, priority=priority, weight=weight)
            connection.execute(
                new.on_conflict_do_update(
                    index_elements=[ShareRow.cohort, ShareRow.priority], set_={"weight": new.excluded.weight}
                )
            )
        record(connection, "cohort_weighted", actor, cohort=cohort, weight=weight)
