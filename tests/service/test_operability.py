"""What operators rely on: refusal of an unsafe broker, figures, an audit trail, and restarts from any state."""

import json
import signal
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest

from grader_service.queue.redis_check import unsafe
from grader_service.retry_policy import RetryPolicy
from grader_service.store import leases, operations
from grader_service.store.tables import RunState
from tests.service.faults import envelope, explained, no_writes, push, scrape, writer_waits
from tests.services.kept_port import kept_port
from tests.services.redis_server import redis_server
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_an_unsafe_redis_is_refused_in_production(service):
    """No append-only file, an evicting policy, no password: named one by one, and nothing is started (G1)."""
    with redis_server("--appendonly", "no", "--maxmemory-policy", "volatile-lru", "--protected-mode", "no") as redis:
        redis.client().config_set("requirepass", "")
        url = f"redis://127.0.0.1:{redis.port}/0"
        with ThreadPoolExecutor() as pool:
            ends = [
                pool.submit(service.command, "worker", role, GRADER_PRODUCTION="true", GRADER_REDIS_URL=url)
                for role in ("judge", "run")
            ]
        for end in ends:
            done = end.result()
            said = " ".join((done.stdout + done.stderr).split())
            assert done.returncode == 2, said
            for problem in ("append-only file", "volatile-lru", "asks for no password"):
                assert problem in said, said
        assert redis.client().keys("*") == []
    with redis_server() as redis:
        assert unsafe(redis.client()) == []


@pytest.fixture
def port():
    """For `grader metrics`."""
    with kept_port() as found:
        yield found


def test_figures_follow_what_happens(service, port):
    """Waiting, running, refused, delivered, dead-lettered: each scrape says what the store says (G4)."""
    service.start("metrics", "--port", str(port))
    service.judge(GRADER_MAX_ATTEMPTS="1")

    def figures():
        try:
            return scrape(port)
        except (urllib.error.URLError, ConnectionError):
            return {}

    def shows(**expected):
        def look():
            found = figures()
            return all(found.get(name, 0.0) == value for name, value in wanted.items())

        wanted = {_NAMES[name]: value for name, value in expected.items()}
        wait_for(look, 20)

    def counted(state):
        found = figures()
        return sum(
            found.get(f'grader_runs{{purpose="{purpose}",state="{state}"}}', 0.0) for purpose in ("live", "regrade")
        )

    assert wait_for(figures, 20)["grader_store_up"] == 1
    client = service.redis.client()
    client.set("inbox", "no list, so that nothing can be sent to it")
    reply_to = {"queue": "inbox", "task": "lab.ready"}
    gate = service.gate()
    sent = [
        service.post(service.message(source=gate.source, reply_to=reply_to)),
        service.post(service.message(source=gate.source), queue="regrade"),
    ]
    push(service, envelope("%%%", task_id="malformed"))
    shows(queued_live=1, queued_regrade=1, accepted=2, refused=1)
    assert wait_for(lambda: figures()['grader_oldest_waiting_seconds{purpose="live"}'] > 0.5, 10)
    runner = service.runner(GRADER_MAX_ATTEMPTS="1")
    # Mostly the live one runs first; not where a sweep held its row in the instant of the claim.
    wait_for(lambda: [counted(state) for state in ("running", "run_queued")] == [1, 1], 20)
    shows(ready=1)
    gate.open()
    for _, task_id in sent:
        service.result(task_id)
    shows(done_live=1, done_regrade=1, passed=2, undelivered=1, running=0)
    client.delete("inbox")
    shows(undelivered=0)
    assert client.llen("inbox") == 1
    runner.send(signal.SIGSTOP)

    submission_id, _ = service.post()
    service.await_state(submission_id, "run_queued")
    artifacts = service.state_dir / "artifacts"  # without them a run cannot succeed: dead-lettered, and never failed
    away = artifacts.rename(artifacts.with_name("away"))
    runner.send(signal.SIGCONT)
    shows(dead_lettered=1, needs_attention=1)
    assert [run["submission_id"] for run in operations.queue_state(service.store).stuck] == [submission_id]
    away.rename(artifacts)
    assert service.command("retry", "--all").returncode == 0
    service.one_verdict(submission_id)
    shows(dead_lettered=0, needs_attention=1, passed=3)
    events = explained(service, submission_id)
    assert events == [
        *("accepted", "run_claimed", "needs_attention", "retried"),
        *("run_claimed", "run_done", "judge_claimed", "verdict"),
    ]
    told = json.loads(service.command("status", submission_id, "--json").stdout)
    assert [event["kind"] for event in told["events"]] == events
    assert told["verdict"]["status"] == "passed"


_NAMES = {
    "accepted": 'grader_events_total{kind="accepted"}',
    "refused": 'grader_events_total{kind="refused"}',
    "needs_attention": 'grader_events_total{kind="needs_attention"}',
    "queued_live": 'grader_runs{purpose="live",state="run_queued"}',
    "queued_regrade": 'grader_runs{purpose="regrade",state="run_queued"}',
    "running": 'grader_runs{purpose="live",state="running"}',
    "done_live": 'grader_runs{purpose="live",state="done"}',
    "done_regrade": 'grader_runs{purpose="regrade",state="done"}',
    "dead_lettered": 'grader_runs{purpose="live",state="needs_attention"}',
    "passed": 'grader_verdicts_total{status="passed"}',
    "undelivered": "grader_answers_undelivered",
    "ready": 'grader_devices{state="ready"}',
}


def test_a_restart_goes_on_from_every_state(service):
    """Workers die with a run in each state; after a migration new ones finish all but dead letters (G7, G5)."""
    workers = service.both()
    done = service.post()
    service.result(done[1])
    with no_writes(service, "verdict"):
        judging = service.post()
        writer_waits(service, "verdict")
        judge_queued = service.post()
        service.await_state(judge_queued[0], "judge_queued")
        gate, *running = service.gated()
        dead_lettered = service.post()
        service.await_state(dead_lettered[0], "run_queued")
        run_queued = service.post()
        service.await_state(run_queued[0], "run_queued")
        for worker in workers:
            worker.end(signal.SIGKILL)
    gate.open()
    claim = leases.claim(service.store, "run", "test", 60)
    assert claim.submission_id == dead_lettered[0]
    leases.fail(service.store, claim, "on purpose", RetryPolicy(max_attempts=1, delay_s=0))
    ids = [done, judging, judge_queued, running, run_queued, dead_lettered]
    assert {service.state(one) for one, _ in ids} == {state.value for state in RunState} - {"cancelled"}  # of re-grades

    assert service.command("store", "migrate").returncode == 0
    service.both()
    for submission_id, task_id in ids[:-1]:
        assert service.result(task_id)["status"] == "passed"
        service.one_verdict(submission_id)
        explained(service, submission_id)
    assert service.state(dead_lettered[0]) == "needs_attention"
    assert service.command("retry", service.runs(dead_lettered[0])[0]["run_id"]).returncode == 0
    assert service.result(dead_lettered[1])["status"] == "passed"
    assert explained(service, dead_lettered[0])[-1] == "verdict"
