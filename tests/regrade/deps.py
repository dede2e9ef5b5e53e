"""Somebody who judges batches in this process, over a cohort of known kinds; and what a test does with the store."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import select, update

from checks.registry import Registry
from grader_service.model.regrade import BatchState, Selection
from grader_service.model.verdict import Outcome
from grader_service.regrade.bulk import CHUNK, BulkDeps, judge_chunk
from grader_service.regrade.diff import diff_of
from grader_service.regrade.planning import PlanRequest, plan
from grader_service.signer.signatures import KeySigner
from grader_service.store import regrade_states, regrades
from grader_service.store.tables import EvidenceRow, OutboxRow, VerdictRow, WaiterRow, table_of

COUNT = 40


def some_deps(store, **changes):
    return BulkDeps(store, Registry(), KeySigner(Ed25519PrivateKey.generate()), "worker", **changes)


def planned(deps, *labs, reason="because", level="auto", repeats=1, gpu_budget_s=None, **selection):
    request = PlanRequest(Selection(**selection), reason, level, repeats, gpu_budget_s, labs)
    return plan(deps.store, deps.registry, request, "ann")


def started(deps, *labs, **changes):
    batch_id = planned(deps, *labs, **changes).batch_id
    regrade_states.start(deps.store, batch_id, "ann")
    return batch_id


def judge_all(deps, size=CHUNK):
    """Judges chunks of this size until nothing waits any more; returns how many items there were."""
    return sum(iter(lambda: judge_chunk(deps, size=size), None))


def worked_off(deps, *labs, **changes):
    batch_id = started(deps, *labs, **changes)
    judge_all(deps)
    assert state(deps, batch_id) is BatchState.FINISHED
    return batch_id


def state(deps, batch_id):
    return regrades.batch(deps.store, batch_id).state


def diff(deps, batch_id):
    """What a batch changes, as its operator is told."""
    batch, progress = regrades.batch(deps.store, batch_id), regrades.progress(deps.store, batch_id)
    return diff_of(batch, progress, regrades.changes(deps.store, batch_id))


def counts(deps, batch_id):
    return {key: n for key, n in regrades.progress(deps.store, batch_id).counts.items() if n}


def read(store, *columns, where=()):
    """What stands in these columns, row by row, where all conditions hold."""
    with store.transaction() as connection:
        return connection.execute(select(*columns).where(*where)).all()


def overwrite(store, table, *where, **values):
    """Puts these values into the rows of a table for which all conditions hold."""
    with store.transaction() as connection:
        connection.execute(update(table).where(*where).values(values))


def in_force(deps):
    rows = read(deps.store, VerdictRow.submission_id, VerdictRow.verdict_id, where=[VerdictRow.current])
    return {row.submission_id: row.verdict_id for row in rows}


def answers(deps):
    return sorted(row.verdict_id for row in read(deps.store, table_of(OutboxRow).c.verdict_id))


def waiting(deps, submission_ids):
    """How many answers somebody waits for, over these submissions."""
    return len(read(deps.store, WaiterRow.id, where=[WaiterRow.submission_id.in_(submission_ids)]))


def runs_of(*submission_ids):
    """Whether evidence is that of the verdicts of these submissions."""
    return EvidenceRow.run_id.in_(select(VerdictRow.run_id).where(VerdictRow.submission_id.in_(submission_ids)))


def lose(deps, *submission_ids):
    """Takes evidence away, as a clean-up that went too far would."""
    overwrite(deps.store, EvidenceRow, runs_of(*submission_ids), document=b"", removed_at=1.0)


def undecided(summary, outcome="inconclusive", **changes):
    """The summary as it were if the ratio had come out so."""
    came_out = {"outcome": Outcome(outcome), "score": None}
    checks = (check.model_copy(update=came_out if check.id == "throughput_ratio" else {}) for check in summary.checks)
    return summary.model_copy(update={"checks": tuple(checks), **changes})


def rewrite(store, *summaries):
    """Puts these in the place of what their verdicts say."""
    for summary in summaries:
        text = summary.model_dump_json(exclude_defaults=True)
        overwrite(store, VerdictRow, VerdictRow.verdict_id == summary.verdict_id, summary=text)
