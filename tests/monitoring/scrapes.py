"""What `grader metrics` says of a store, as text and as samples; and stores of which it says something."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from sqlalchemy import insert, literal, select, update

from grader_service.retry_policy import RetryPolicy
from grader_service.service.metrics import StoreCollector
from grader_service.service.readiness import Readiness
from grader_service.service.sweeper import Sweeper
from grader_service.store import backups, dead_letters, devices, leases, outbox, workers
from grader_service.store.clock import db_now
from grader_service.store.events import record
from grader_service.store.opinions import SECOND_OPINION
from grader_service.store.outbox import Waiter
from grader_service.store.regrade_tables import RegradeBatchRow, RegradeItemRow
from grader_service.store.review_tables import ReviewCaseRow
from grader_service.store.tables import RunRow, VerdictRow, WorkerRow
from grader_service.store.workers import Identity
from tests.hand_clock import HandClock
from tests.store.factories import a_submission, accept, finish

JUDGE, REGRADE = Identity(workers.JUDGE, "host"), Identity(workers.REGRADE, "host")
RUNNERS = [Identity(workers.RUN, "host", f"GPU-{number}") for number in (1, 2)]


def scraped(store) -> list[Sample]:
    """The samples of one scrape, read back from its text."""
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    text = generate_latest(registry).decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def a_service(store):
    """A judge, a worker of batches and two runners, all of them ready, and a verdict that was given."""
    for identity in (JUDGE, REGRADE, *RUNNERS):
        workers.say(store, identity, (), {"broker": 0.2, "results": 0.2}, {"state": 0.5})
    for identity in RUNNERS:
        devices.see(store, identity.device_id, "host", "H100")
    backups.made(store, "today", backups.now(store))
    accept(store, a_submission(1))
    finish(store, "s:1", "host/GPU-1/abc", gpu_held_s=12.0, timings_s={"learner": 5.0})


def silence(store, identity):
    """It was killed: its row stands there and grows old."""
    with store.transaction() as connection:
        is_it = WorkerRow.worker_id == identity.worker_id
        connection.execute(update(WorkerRow).where(is_it).values(seen_at=db_now() - 2 * workers.SILENT_S))


def fail_a_chore(store, state_dir, *seconds):
    """A judge's sweeper whose chore fails at these seconds, and what the judge says in its next round; the sweeper."""
    clock, fails = HandClock(), [True]

    def chore():
        if fails[0]:
            raise OSError("no room")

    readiness = Readiness(JUDGE, store, state_dir, (), (), chores=lambda: sweeper.failing)
    sweeper = Sweeper([("ready", readiness.look), ("deliver", chore)], 1.0, clock)
    began = clock.now
    for second in seconds:
        clock.now = began + second
        sweeper.once()
    readiness.look()
    fails[0] = False
    return sweeper


def post(store, queue, number=1, task_id=None):
    """Answers for this queue."""
    with store.transaction() as connection:
        for _ in range(number):
            outbox.enqueue(connection, None, Waiter(task_id, queue, "lab.ready"), "{}")


def leave_unread(store, queue, number=1):
    """Answers that find this queue full, as `queue.outbox_relay` tells it."""
    post(store, queue, number)
    first, *_ = [message for message in outbox.due(store, 10_000) if message.reply_queue == queue]
    outbox.unread(store, first, "full")
    outbox.none_for(store, queue, "full")


def dead_letter_run(store):
    """A run that failed through us too often."""
    accept(store, a_submission(7, learner="g"))
    leases.fail(
        store, leases.claim(store, "run", "host/GPU-1/abc", 60), "engine gone", RetryPolicy(max_attempts=1, delay_s=0.0)
    )


def wait_long(store, purpose="live"):
    """A learner has waited for an hour."""
    accept(store, a_submission(8, learner="h"))
    with store.transaction() as connection:
        waits = RunRow.state == "run_queued"
        connection.execute(update(RunRow).where(waits).values(created_at=db_now() - 3600, purpose=purpose))


def leave_to_a_person(store, hours):
    """A check left its answer on a submission that is graded to a person, who has not decided for so long."""
    with store.transaction() as connection:
        connection.execute(update(VerdictRow).where(VerdictRow.submission_id == "s:1").values(needs_review=True))
        case = select(VerdictRow.verdict_id, literal("reflections"), literal("s:1"), literal("5" * 64))
        case = case.add_columns(db_now() - 3600 * hours).where(VerdictRow.submission_id == "s:1")
        columns = ["verdict_id", "check_id", "submission_id", "subject", "opened_at"]
        connection.execute(insert(ReviewCaseRow).from_select(columns, case))


def a_batch(store):
    """A batch of re-grades with one item."""
    with store.transaction() as connection:
        connection.execute(
            insert(RegradeBatchRow).values(
                batch_id="b", state="running", reason="", author="a", selection={}, level="judge", repeats=1, labs=[],
                estimate={}, note="", created_at=0.0,
            )
        )  # fmt: skip
        connection.execute(
            insert(RegradeItemRow).values(
                batch_id="b", submission_id="s:1", repetition=1, level="judge", reason="", base_verdict_id="v",
                base_run_id="r", state="waiting", attempts=0, not_before=0.0, gpu_s=0.0,
            )
        )  # fmt: skip


def everything(store, state_dir):
    """A service in which all has happened that there are figures of."""
    a_service(store)
    accept(store, a_submission(2, learner="b"), waiter=Waiter(task_id="t", reply_queue="inbox", reply_task="x"))
    finish(store, "s:2", "host/GPU-2/abc")
    with store.transaction() as connection:
        record(connection, "verdict", "judge", status="failed", checks={"jpeg_dataset": "failed"})
        record(connection, SECOND_OPINION, "judge", **{SECOND_OPINION: "kept"})
    fail_a_chore(store, state_dir, 0, 90)
    leave_unread(store, "inbox")
    dead_letter_run(store)
    wait_long(store)
    leave_to_a_person(store, 25)
    a_batch(store)
    dead_letters.keep(store, b"what", "live", None, "the message is not JSON")
    workers.say(store, REGRADE, ("broken",))
    workers.say(store, RUNNERS[0], (), {"broker": 0.2, "results": 0.2})
