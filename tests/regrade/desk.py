"""Somebody who judges batches in this process, over a cohort of known kinds; and what a test does with the store."""

from sqlalchemy import delete, func, select, update

from grader_service.model.regrade import BatchState, Selection
from grader_service.model.verdict import Outcome
from grader_service.regrade.bulk import CHUNK, judge_chunk
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.store import regrade_states, regrades
from grader_service.store.tables import EvidenceRow, OutboxRow, VerdictRow, WaiterRow, table_of

COUNT = 40


def planned(desk, *labs, **changes):
    values = {"selection": Selection(), "reason": "because", "lab_files": labs} | changes
    return plan(desk.store, desk.registry, PlanRequest(**values), "ann").batch_id


def started(desk, *labs, **changes):
    batch_id = planned(desk, *labs, **changes)
    regrade_states.start(desk.store, batch_id, "ann")
    return batch_id


def judge_all(desk, size=CHUNK):
    """Judges chunks of this size until nothing waits any more; returns how many items there were."""
    return sum(iter(lambda: judge_chunk(desk, size=size), None))


def worked_off(desk, *labs, **changes):
    batch_id = started(desk, *labs, **changes)
    judge_all(desk)
    assert state(desk, batch_id) is BatchState.FINISHED
    return batch_id


def state(desk, batch_id):
    return regrades.batch(desk.store, batch_id).state


def counts(desk, batch_id):
    return {key: n for key, n in regrades.progress(desk.store, batch_id).counts.items() if n}


def in_force(desk):
    with desk.store.transaction() as connection:
        rows = connection.execute(select(VerdictRow.submission_id, VerdictRow.verdict_id).where(VerdictRow.current))
        return {row.submission_id: row.verdict_id for row in rows}


def answers(desk):
    with desk.store.transaction() as connection:
        return sorted(connection.execute(select(table_of(OutboxRow).c.verdict_id)).scalars())


def waiting(desk, submission_ids):
    """How many answers somebody waits for, over these submissions."""
    with desk.store.transaction() as connection:
        return connection.execute(
            select(func.count()).select_from(WaiterRow).where(WaiterRow.submission_id.in_(submission_ids))
        ).scalar_one()


def lose(desk, *submission_ids):
    """Takes evidence away, as a clean-up that went too far would."""
    with desk.store.transaction() as connection:
        runs = select(VerdictRow.run_id).where(VerdictRow.submission_id.in_(submission_ids))
        connection.execute(delete(EvidenceRow).where(EvidenceRow.run_id.in_(runs)))


def undecided(standing, outcome="inconclusive", **changes):
    """The standing as it were if the ratio had come out so."""
    came_out = {"outcome": Outcome(outcome), "score": None}
    checks = (check.model_copy(update=came_out if check.id == "throughput_ratio" else {}) for check in standing.checks)
    return standing.model_copy(update={"checks": tuple(checks), **changes})


def rewrite(store, *standings):
    """Puts these in the place of what their verdicts say."""
    with store.transaction() as connection:
        for standing in standings:
            text = standing.model_dump_json(exclude_defaults=True)
            connection.execute(
                update(VerdictRow).where(VerdictRow.verdict_id == standing.verdict_id).values(standing=text)
            )
