"""Workers that are killed, told to stop, or taken down by what they run: no submission is lost or blamed for it."""

import json
import os
import signal
import time

import psutil
import pytest

from tests.service.harness import QUICK, SLOW
from tests.service.local_service import containers_of, nothing_left, pods_at_work
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

POISON = """
import os, signal, time

def parent(pid):
    return int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])

if not os.path.exists({cured!r}):
    pid = os.getpid()
    while "process/supervisor" not in open(f"/proc/{{pid}}/cmdline").read():
        pid = parent(pid)
    os.kill(parent(pid), signal.SIGKILL)
    time.sleep(60)
"""


def at_work(service, engine, seconds, **environment):
    """Workers of this environment, and a submission whose container runs: runner, id, the container's id."""
    service.environment |= environment
    _, worker = service.both()
    submission_id, _ = service.post(service.message(source=SLOW.format(seconds=seconds)))
    (pod,) = wait_for(lambda: pods_at_work(engine, service.state_dir), 30)
    return worker, submission_id, pod.id


def gone(service, engine, container_id):
    return container_id not in {container.id for container in containers_of(engine, service.state_dir)}


def graded_again(service, engine, submission_id):
    """Our failure was counted once, the verdict is the learner's own, and nothing is left of either try."""
    service.one_verdict(submission_id)
    (run,) = service.runs(submission_id)
    assert (run["state"], run["attempts"], run["fence"]) == ("done", 1, 3)  # two runs and the judging
    assert service.events(submission_id).count("failed_by_us") == 1
    assert wait_for(lambda: nothing_left(engine, service.state_dir), 15)


def test_a_killed_child_costs_a_try_of_ours_and_no_more(docker_service, engine):
    """(C1) Its container is reaped by the worker that is still there, and the run is executed again."""
    service = docker_service
    worker, submission_id, container_id = at_work(service, engine, 4, GRADER_LEASE_S="4")
    os.kill(worker.child(), signal.SIGKILL)
    wait_for(lambda: gone(service, engine, container_id), 15)
    graded_again(service, engine, submission_id)
    assert worker.process.poll() is None


@pytest.mark.parametrize("warned", [False, True], ids=["kill", "term-then-kill"])
def test_a_killed_worker_is_replaced_on_its_device(docker_service, engine, warned):
    """(C2, C5, E2') The next worker gets the device, removes the dead one's container, and executes the run."""
    service = docker_service
    worker, submission_id, container_id = at_work(service, engine, 5, GRADER_LEASE_S="4")
    child = worker.child()
    if warned:
        worker.send(signal.SIGTERM)
        time.sleep(1)
    worker.end(signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(child), 5)
    service.runner()
    wait_for(lambda: gone(service, engine, container_id), 15)
    graded_again(service, engine, submission_id)


def test_a_worker_that_is_told_to_stop_returns_a_long_run(docker_service, engine):
    """(C4) Within its patience plus 5 s, with nothing left behind, at no cost; another worker takes it at once."""
    service = docker_service
    worker, submission_id, _ = at_work(service, engine, 6, GRADER_SOFT_SHUTDOWN_S="1")
    asked = time.monotonic()
    assert worker.end(signal.SIGTERM) == 0
    assert time.monotonic() - asked < 4 * (1 + 5), "a busy machine is given a multiple"
    assert nothing_left(engine, service.state_dir)
    (run,) = service.runs(submission_id)
    assert (run["state"], run["attempts"], run["lease_owner"]) == ("run_queued", 0, None)
    assert service.events(submission_id)[-1] == "given_back"
    service.runner()
    service.one_verdict(submission_id, timeout_s=25)
    assert service.runs(submission_id)[0]["attempts"] == 0


def test_a_child_that_hangs_is_ended_with_its_container(docker_service, engine):
    """(C6) Beyond the hard limit: the stopped child is killed and replaced, and its container goes."""
    service = docker_service
    worker, submission_id, container_id = at_work(service, engine, 2, GRADER_LEASE_S="3", GRADER_RUN_LIMIT_S="15")
    child = worker.child()
    os.kill(child, signal.SIGSTOP)
    wait_for(lambda: not psutil.pid_exists(child), 60)
    wait_for(lambda: gone(service, engine, container_id), 15)
    graded_again(service, engine, submission_id)
    assert worker.process.poll() is None


def test_a_worker_that_is_told_to_stop_finishes_a_short_run(service):
    """(C3) Exit 0 as soon as the result is stored; nothing was given back."""
    worker = service.runner(GRADER_SOFT_SHUTDOWN_S="60")
    service.judge()
    submission_id, _ = service.post(service.message(source=SLOW.format(seconds=2)))
    service.await_state(submission_id, "running")
    asked = time.monotonic()
    assert worker.end(signal.SIGTERM) == 0
    assert time.monotonic() - asked < 45, "its patience is a minute"
    service.one_verdict(submission_id)
    assert service.events(submission_id) == ["accepted", "run_claimed", "run_done", "judge_claimed", "verdict"]


def test_poison_is_dead_lettered_and_never_the_learners_failure(service):
    """(C7) After three tries an operator is asked; others are graded meanwhile; `grader retry` gives fresh tries."""
    cured = service.state_dir / "cured"
    service.environment |= {"GRADER_LEASE_S": "3", "GRADER_RETRY_DELAY_S": "0.5", "GRADER_LEARNER_PER_HOUR": "2"}
    _, worker = service.both()
    poison = POISON.format(cured=str(cured)) + QUICK
    sick, _ = service.post(service.message(source=poison, learner="unlucky"))
    service.await_state(sick, "running")
    others = [service.post()[0] for _ in range(3)]
    for other in others:
        service.one_verdict(other)
    assert service.await_state(sick, "needs_attention", timeout_s=60) == "needs_attention"
    (run,) = service.runs(sick)
    assert run["attempts"] == 3
    assert "stopped renewing its lease" in run["last_error"]
    assert service.verdicts(sick) == []
    assert service.events(sick).count("run_claimed") == 3
    assert worker.process.poll() is None

    # One submission is all that it cost its learner.
    again, _ = service.post(service.message(learner="unlucky"))
    service.one_verdict(again)

    listed = service.command("queue", "--json")
    assert listed.returncode == 1
    assert [stuck["run_id"] for stuck in json.loads(listed.stdout)["needs_attention"]] == [run["run_id"]]
    cured.touch()
    assert service.command("retry", run["run_id"]).returncode == 0
    service.one_verdict(sick)
