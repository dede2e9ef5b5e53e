"""Figures come out of the database alone, and are the same whoever reads them, and when."""

import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import update

from grader_service.retry_policy import RetryPolicy
from grader_service.service.event_figures import EventFigures
from grader_service.service.metrics import StoreCollector
from grader_service.store import cancelling, dead_letters, devices, leases, operations, outbox, workers
from grader_service.store.clock import db_now
from grader_service.store.engine import Store
from grader_service.store.ids import Named
from grader_service.store.outbox import Waiter
from grader_service.store.tables import OutboxRow, WorkerRow
from tests.monitoring.scrapes import leave_to_a_person, leave_unread, post, silence
from tests.store.factories import a_submission, accept, finish


def text_of(store):
    """One scrape by a new exporter, when all that happened is settled."""
    time.sleep(0.05)
    registry = CollectorRegistry()
    registry.register(StoreCollector(store))
    return generate_latest(registry).decode()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Events are counted as soon as they are there."""
    monkeypatch.setattr(operations, "_SETTLED_S", 0.0)


def hand_in(store, number):
    accept(store, a_submission(number, learner=None), waiter=Waiter(task_id="t"))


def grade_one(store, number, **provenance):
    """Accept, run and judge."""
    hand_in(store, number)
    finish(store, f"s:{number}", "host/GPU-1/abc", **provenance)


def test_what_waits_for_a_person(store):
    """How much, and for how long the oldest has; none where nothing does."""
    grade_one(store, 1)
    text = text_of(store)
    assert "grader_reviews_waiting 0.0" in text
    assert "grader_reviews_oldest_seconds 0.0" in text
    leave_to_a_person(store, 2)
    text = text_of(store)
    assert "grader_reviews_waiting 1.0" in text
    assert "grader_reviews_oldest_seconds 72" in text


def test_figures(store):
    """Counts, stages, devices, what waits and what was not delivered."""
    devices.see(store, "GPU-1", "host", "H100")
    workers.say(store, workers.Identity(workers.RUN, "host", "GPU-1"), ())
    away = ["results: the Redis for results does not answer"]
    workers.say(store, workers.Identity(workers.JUDGE, "host"), away, {"broker": 0.25})
    dead_letters.keep(store, b"what", "live", None, "the message is not JSON")
    for number in range(3):
        grade_one(store, number)
    text = text_of(store)
    assert 'grader_verdicts_total{status="rejected"} 3.0' in text
    assert 'grader_runs{purpose="live",state="done"} 3.0' in text
    assert 'grader_stage_seconds_count{stage="run"} 3.0' in text
    assert 'grader_stage_seconds_bucket{le="3600.0",stage="whole"} 3.0' in text
    assert 'grader_device_seconds_total{device="GPU-1"}' in text
    assert 'grader_events_total{kind="accepted"} 3.0' in text
    assert "grader_answers_undelivered 3.0" in text
    assert 'grader_devices{state="ready"} 1.0' in text
    assert 'grader_worker_ready{role="run",worker="run/GPU-1"} 1.0' in text
    assert 'grader_worker_ready{role="judge",worker="judge/host"} 0.0' in text
    assert 'grader_redis_memory_ratio{redis="broker"} 0.25' in text
    assert "grader_dead_letters 1.0" in text


def test_what_a_verdict_costs(store):
    """Seconds of a GPU are counted for the verdicts that had one."""
    for number, held_s in enumerate((12.0, 20.5, None)):
        grade_one(store, number, gpu_held_s=held_s)
    text = text_of(store)
    assert "grader_verdict_gpu_seconds_sum 32.5" in text
    assert "grader_verdict_gpu_seconds_count 2.0" in text


def test_where_the_time_of_runs_goes(store):
    """Stage by stage, as the report of each verdict draws it."""
    for number, measuring_s in enumerate((8.0, 12.0)):
        grade_one(store, number, timings_s={"learner": 5.0, "measure": measuring_s})
    text = text_of(store)
    assert 'grader_run_stage_seconds_sum{stage="measure"} 20.0' in text
    assert 'grader_run_stage_seconds_count{stage="learner"} 2.0' in text


def test_time_on_a_device_counts_however_the_run_ended(store):
    """A run that ended in an infrastructure failure held its device, too; and nothing is kept of runs that are over."""
    figures = EventFigures(store)
    hand_in(store, 1)
    claim = leases.claim(store, "run", "host/GPU-7/abc", 60)
    time.sleep(0.2)
    leases.fail(store, claim, "the engine fell over", RetryPolicy(max_attempts=1, delay_s=0.0))
    grade_one(store, 2)
    hand_in(store, 2)
    time.sleep(0.05)
    found = {
        sample.labels["device"]: sample.value
        for family in figures.families()
        for sample in family.samples
        if sample.name == "grader_device_seconds_total"
    }
    assert 0.19 <= found["GPU-7"] < 30
    assert (figures._tally.open, figures._tally.on_device) == ({}, {})


def test_each_event_is_counted_once(store):
    """However often it is scraped."""
    collector = StoreCollector(store)
    registry = CollectorRegistry()
    registry.register(collector)
    for number in range(2):
        grade_one(store, number)
        time.sleep(0.02)
        generate_latest(registry)
    assert generate_latest(registry).decode() == text_of(store)


def test_a_database_that_is_away(tmp_path):
    """Is the one thing that is said."""
    store = Store(f"sqlite:///{tmp_path}/never-migrated.db")
    text = text_of(store)
    assert "grader_store_up 0.0" in text
    assert "grader_runs" not in text
    store.close()


def test_how_full_each_redis_is(store):
    """As the worker said that spoke last of it; what a silent one said is no longer true."""

    def heard_of(seconds):
        with store.transaction() as connection:
            connection.execute(update(WorkerRow).where(WorkerRow.host == "old").values(seen_at=db_now() - seconds))
        return workers.newest_memory(workers.workers(store))

    workers.say(store, workers.Identity(workers.JUDGE, "new"), (), {"results": 0.2})
    workers.say(store, workers.Identity(workers.JUDGE, "old"), (), {"broker": 0.9, "results": 0.9})
    assert heard_of(30) == {"broker": 0.9, "results": 0.2}
    assert heard_of(90) == {"results": 0.2}


def test_answers_that_nobody_reads(store):
    """By queue; none that waits for another reason, and none once it was tried in vain or delivered."""

    def found():
        with store.transaction() as connection:
            connection.execute(update(OutboxRow).values(not_before=0.0))
        return outbox.unread_by_queue(store), {message.id: message for message in outbox.due(store)}

    post(store, "away")  # no task waits for it either
    (message,) = outbox.due(store)
    outbox.postponed(store, message, "ConnectionError: refused")
    leave_unread(store, "inbox", 3)
    unread, messages = found()
    assert unread == {"inbox": 3}
    refused, sent = [number for number, message in messages.items() if message.reply_queue == "inbox"][:2]
    outbox.postponed(store, messages[refused], "ConnectionError: refused")
    outbox.delivered(store, [sent])
    assert found()[0] == {"inbox": 1}
    assert 'grader_answers_unread{queue="inbox"} 1.0' in text_of(store)


def test_queues_that_nobody_reads_are_named_up_to_a_number(store):
    """Each name is a time series, and platforms may name as many as they like."""
    for number in range(22):
        leave_unread(store, f"q{number:02}", 2 if number == 21 else 1)
    found = outbox.unread_by_queue(store)
    assert len(found) == 21
    assert (found["q21"], found["q00"], found[outbox.OTHERS]) == (2, 1, 2)


def test_what_a_silent_worker_said_is_no_figure(store):
    """Neither its chores nor its disk are as it left them."""
    judge = workers.Identity(workers.JUDGE, "host")
    failing = workers.Failing(for_s=90.0, error="OSError: \x1b[2J")
    workers.say(store, judge, (), {}, {"state": 0.75}, {"deliver": failing})
    assert workers.workers(store)[0].chores["deliver"]["error"] == "OSError: \ufffd[2J"
    text = text_of(store)
    assert 'grader_chore_failing_seconds{chore="deliver",role="judge",worker="judge/host"} 90.0' in text
    assert 'grader_disk_ratio{folder="state",worker="judge/host"} 0.75' in text
    silence(store, judge)
    text = text_of(store)
    assert "grader_chore_failing_seconds{" not in text
    assert "grader_disk_ratio{" not in text


@pytest.mark.parametrize(
    ("state", "word", "out"),
    [
        (devices.READY, "ready", False),
        (devices.READY, "not ready", True),
        (devices.READY, "silent", True),
        (devices.READY, "ended", False),
        (devices.QUARANTINED, "ended", True),
        (devices.QUARANTINED, "not ready", True),
        (devices.DRAINING, "ready", False),
        (devices.DRAINING, "silent", False),
    ],
)
def test_a_device_that_nobody_can_use(store, state, word, out):
    """By its own state and its runner's word; what an operator drained is where it should be."""
    runner = workers.Identity(workers.RUN, "host", "GPU-1")
    devices.see(store, "GPU-1", "host", "H100")
    devices.set_state(store, "GPU-1", state, "why", "ann")
    workers.say(store, runner, ["run space: no"] if word == "not ready" else [])
    if word == "silent":
        silence(store, runner)
    if word == "ended":
        workers.forget(store, runner)
    assert f'grader_device_out{{device="GPU-1"}} {float(out)}' in text_of(store)


def test_a_run_that_is_cancelled_leaves_its_device(store):
    """Its time on it counts, no stage of a grading does, and nothing of it stays in memory."""
    hand_in(store, 1)
    leases.claim(store, "run", "host/GPU-1/abc", 60)
    time.sleep(0.02)
    cancelling.cancel(store, Named("s:1"), "", "op")
    figures = EventFigures(store)
    time.sleep(0.05)
    families = {family.name: family for family in figures.families()}
    assert families["grader_device_seconds"].samples[0].value >= 0.02
    assert [sample.labels for sample in families["grader_stage_seconds"].samples if sample.name.endswith("_count")] == [
        {"stage": "wait_run"}
    ]
    assert (figures._tally.open, figures._tally.on_device) == ({}, {})
