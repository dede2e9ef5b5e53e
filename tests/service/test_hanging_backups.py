"""A place of backups that hangs, as a disk of another machine that went away: answers wait, and nothing else does."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import select, update

from grader_service.queue import judge_worker
from grader_service.queue.judge_worker import Child
from grader_service.run.execution import RunOutcome
from grader_service.service import runner
from grader_service.service.pipeline import StageEnd
from grader_service.settings import Settings
from grader_service.store import leases, workers
from grader_service.store.clock import db_now
from grader_service.store.files import Files
from grader_service.store.tables import RunRow, VerdictRow
from tests.factories import a_run, an_evidence
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def verdicts(local):
    """How many there are."""
    with local.store.transaction() as connection:
        return len(connection.execute(select(VerdictRow.verdict_id)).all())


def test_a_child_goes_on_judging(redis, local, tmp_path, monkeypatch):
    """It waits a moment for its first answer, and for none while that one hangs."""
    hanging, warned, goes_on = [], [], threading.Event()

    def put(*_):
        hanging.append(threading.current_thread())
        goes_on.wait()

    def execute(*_, run_id, **__):
        return RunOutcome(an_evidence(run=a_run(run_id=run_id)), {})

    monkeypatch.setattr(runner, "execute", execute)
    for _ in range(3):
        local.submit(reply_to={"queue": "inbox", "task": "lab.ready"})
    assert local.run_all(local.deps()) == [StageEnd.STORED] * 3
    monkeypatch.setattr(Files, "put", put)
    monkeypatch.setattr(judge_worker.log, "warning", lambda event, **_: warned.append(event))
    settings = Settings(state_dir=local.state_dir, redis_url=redis.url, backup_store=f"file://{tmp_path}/backups")
    with ThreadPoolExecutor(1) as judging:
        child = Child(settings, "judge")
        judged = judging.submit(lambda: [child() for _ in range(3)])
        try:
            assert wait_for(lambda: verdicts(local) == 3, 20)
            assert None not in judged.result(60)
            assert (len(hanging), warned) == (1, ["answer_waits"])
        finally:
            goes_on.set()


@pytest.mark.slow
def test_a_judge_goes_on(service, tmp_path):
    """It judges, ends leases of the dead, says which of its chores hangs, and ends when it is told to."""
    judge = service.start(
        str(Path(__file__).with_name("hanging_judge.py")),
        program=sys.executable,
        role="judge",
        GRADER_BACKUP_STORE=f"file://{tmp_path}/backups",
    )
    executing = service.runner()
    for _ in range(2):
        submission_id, _ = service.post()
        service.one_verdict(submission_id)

    def said():
        (one,) = [one for one in workers.workers(service.store) if one.role == workers.JUDGE]
        return one.chores and one

    one = wait_for(said, 20)
    assert one.state == "ready"
    assert list(one.chores) == ["deliver"]
    assert one.chores["deliver"]["error"].startswith("it has not ended for ")
    assert executing.end() == 0
    left, _ = service.post()
    service.await_state(left, "run_queued")
    claim = leases.claim(service.store, "run", "gone", 60)
    with service.store.transaction() as connection:
        connection.execute(update(RunRow).where(RunRow.run_id == claim.run_id).values(lease_until=db_now() - 1))
    service.await_state(left, "run_queued")
    assert len(service.undelivered()) == 2
    assert judge.end() == 0
