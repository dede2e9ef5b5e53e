"""What people type at a service that runs: submit, status, queue, retry, devices, store."""

import json

import pytest

from tests.service.harness import QUICK, SLOW
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def test_a_submission_from_the_command_line(service, tmp_path):
    """`submit --wait` ends as `grade` does; `status` tells the story; `queue` and `devices` show what is there."""
    (tmp_path / "s.py").write_text(QUICK)
    service.both()
    verdict = tmp_path / "verdict.json"
    done = service.command(
        "submit", str(tmp_path / "s.py"), "--submission-id", "cli:1", "--learner", "lea",
        "--steps", "reflection", "--wait", "60", "--json", str(verdict),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "PASSED" in done.stdout
    assert json.loads(verdict.read_text())["submission_id"] == "cli:1"
    assert service.command("verify", str(verdict)).returncode == 0
    (tmp_path / "s.py").write_text(f"{QUICK}# changed\n")
    refused = service.command("submit", str(tmp_path / "s.py"), "--submission-id", "cli:1", "--wait", "60")
    assert (refused.returncode, "handed in before with other content" in " ".join(refused.stdout.split())) == (5, True)
    story = service.command("status", "cli:1")
    assert story.returncode == 0
    for word in ("accepted", "run_claimed", "run_done", "judge_claimed", "verdict", "PASSED"):
        assert word in story.stdout
    everything = json.loads(service.command("status", "cli:1", "--json").stdout)
    assert everything["verdict"] == json.loads(verdict.read_text())
    queue = service.command("queue")
    assert (queue.returncode, "done" in queue.stdout) == (0, True)
    assert "ready" in service.command("devices", "list").stdout
    assert service.command("store", "check").returncode == 0


def test_what_is_not_there_is_said(service):
    """Unknown submissions, runs and devices; a verdict that does not come in time; files that are missing."""
    assert service.command("status", "nobody").returncode == 1
    missing_run = service.command("retry", "0" * 32)
    assert (missing_run.returncode, "no submission and no run has the id" in missing_run.stderr) == (2, True)
    assert service.command("retry").returncode == 2
    assert service.command("devices", "ready", "GPU-none").returncode == 2
    assert service.command("submit", "/nonexistent.py").returncode == 2
    service.redis.kill()
    away = service.command("worker", "judge")
    assert (away.returncode, "Redis does not answer" in away.stderr) == (3, True)


def test_a_place_in_the_queue(service, tmp_path):
    """`status` says how many runs come first."""
    service.judge()
    for number in range(3):
        service.post(service.message(f"w:{number}", source=SLOW.format(seconds=0)))
        wait_for(lambda n=number: service.state(f"w:{n}") == "run_queued", 20)
    story = service.command("status", "w:2")
    assert "2 ahead of it" in story.stdout
    (tmp_path / "s.py").write_text(QUICK)
    late = service.command("submit", str(tmp_path / "s.py"), "--wait", "0.5", "--steps", "reflection")
    assert (late.returncode, "no verdict came within" in late.stderr) == (3, True)
