"""What a store holds of submissions, some of it old."""

import hashlib
import json
import threading

from sqlalchemy import select, update

from grader_service.model.regrade import Batch, BatchState, Estimate, Level, Selection
from grader_service.store import leases, regrades, results
from grader_service.store.outbox import Waiter
from grader_service.store.regrades import NewItem
from grader_service.store.retention_tables import EvidenceBlobRow
from grader_service.store.tables import (
    Base,
    BlobRow,
    EvidenceRow,
    OutboxRow,
    RunRow,
    SubmissionRow,
    VerdictRow,
    WaiterRow,
    table_of,
)
from tests.services.postgres_server import somebody_waits
from tests.store.factories import a_submission, a_verdict, accept
from tests.waiting import wait_for

DAY_S = 86_400.0
OF_SUBMISSIONS = (SubmissionRow, RunRow, EvidenceRow, EvidenceBlobRow, BlobRow, VerdictRow, WaiterRow, OutboxRow)


def graded(store, number, *, graph=b"graph", kind="measured", **changes):
    """A submission with everything: a measured run, a graph, a verdict, and somebody who waits; its id."""
    submission = a_submission(number, **changes)
    accept(store, submission, waiter=Waiter(task_id=f"task-{number}"))
    run = leases.claim(store, "run", "host/GPU-1/abc", 60)
    digest = hashlib.sha256(graph).hexdigest()
    document = json.dumps({"discovery": {"graphs": [{"sha256": digest, "size_bytes": len(graph)}]}}).encode()
    assert results.store_evidence(store, run, kind, document, {digest: graph})
    judge = leases.claim(store, "judge", "judge", 60)
    verdict = a_verdict(submission.submission_id).model_copy(update={"learner": submission.learner})
    assert results.store_verdict(store, judge, verdict)
    return submission.submission_id


def age(store, table: type[Base], column: str, days: float, *where):
    """Makes rows so much older."""
    with store.transaction() as connection:
        connection.execute(update(table).where(*where).values({column: table_of(table).c[column] - days * DAY_S}))


def two_graphs():
    """In the order in which a run brings them."""
    return sorted((b"1", b"2"), key=lambda graph: hashlib.sha256(graph).hexdigest())


def brought_again(store, graphs, remove):
    """What `remove` returns, in a thread, while a run has brought the first of these graphs and brings the second."""
    done = []
    other = threading.Thread(target=lambda: done.append(remove()))
    first, second = graphs
    with store.transaction() as run:
        results.store_blob(run, hashlib.sha256(first).hexdigest(), first)
        other.start()
        wait_for(lambda: somebody_waits(store.engine), 10)
        results.store_blob(run, hashlib.sha256(second).hexdigest(), second)
    other.join(60)
    (returned,) = done
    return returned


def a_batch(store, submission_id, **selection):
    """A planned batch of one submission that is to be run; its id."""
    with store.transaction() as connection:
        verdict_id = connection.execute(
            select(VerdictRow.verdict_id).where(VerdictRow.submission_id == submission_id, VerdictRow.current)
        ).scalar_one()
    batch = Batch(
        batch_id=regrades.new_batch_id(),
        state=BatchState.PLANNED,
        reason="because",
        author="ann",
        created_at=0.0,
        selection=Selection(**selection),
        level="run",
        repeats=1,
        labs=(),
        estimate=Estimate(counts=(), selected=1, items=1, gpu_s=1.0, eta_s=None),
    )
    regrades.create(store, batch, [NewItem(verdict_id, Level.RUN, "run.asked")], "ann")
    return batch.batch_id


def refuse_changes(store, table, column, value):
    """The database refuses to change or delete this row, as one that is damaged."""
    with store.transaction() as connection:
        for action in ("update", "delete"):
            name = f"bad_{table}_{action}"
            if store.is_sqlite:
                connection.exec_driver_sql(
                    f"create trigger {name} before {action} on {table} when old.{column} = '{value}' "
                    "begin select raise(abort, 'this row is damaged'); end"
                )
            else:
                connection.exec_driver_sql(
                    f"create function {name}() returns trigger as $$ begin raise exception 'this row is damaged'; end "
                    f"$$ language plpgsql; create trigger {name} before {action} on {table} for each row "
                    f"when (old.{column}::text = '{value}') execute function {name}()"
                )
