"""A service that is at work is brought to the next version, beside workers of the one before."""

import re
import shutil
from pathlib import Path

import pytest

from grader_service.store.engine import SCHEMA
from grader_service.store.tables import EventRow, EvidenceRow, WorkerRow
from tests.levels.parts import ROOT
from tests.service.harness import Service
from tests.store.next_version import NEXT, write_migrations
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def coming(folder: Path) -> Path:
    """This tree with migrations that only add."""
    for package in ("grader_service", "sandbox", "checks", "images"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    engine = folder / "grader_service/store/engine.py"
    engine.write_text(re.sub(r'^SCHEMA = ".*"$', f'SCHEMA = "{NEXT}"', engine.read_text(), flags=re.MULTILINE))
    write_migrations(folder / "grader_service/store/migrations/versions")
    return folder


def slots_of(service: Service, submission_id: str) -> list[str]:
    """On which slots its runs were claimed."""
    claims = service.rows(EventRow, EventRow.submission_id == submission_id, EventRow.kind == "run_claimed")
    return [row["actor"].split("/")[1].split(":")[-1] for row in claims]


def ready_now(service: Service) -> list[bool]:
    """Whether each worker is ready, at its second word from now: the first may be of a look that was under way."""

    def all_spoke() -> None:
        since = max(row["seen_at"] for row in service.rows(WorkerRow))
        wait_for(lambda: all(row["seen_at"] > since for row in service.rows(WorkerRow)), 20)

    all_spoke()
    all_spoke()
    return [row["ready"] for row in service.rows(WorkerRow)]


def test_both_versions_work_and_nothing_is_lost_or_doubled(service, tmp_path):
    """Runs are in flight while the schema moves on; old workers store, claim and judge after it, beside new ones."""
    (tmp_path / "new").mkdir()
    new = str(coming(tmp_path / "new"))
    assert service.store.schema() == SCHEMA
    old_judge, old_runner = service.both()
    gate, flying, flying_task = service.gated()
    migrated = service.command("store", "migrate", PYTHONPATH=new)
    assert migrated.returncode == 0, migrated.stderr
    assert service.store.schema() == NEXT
    assert ready_now(service) == [True, True]
    assert service.command("store", "check").returncode == 0
    assert service.command("store", "migrate").returncode == 0, "a newer schema that fits is left as it is"

    gate.open()
    service.one_verdict(flying)
    service.judge(PYTHONPATH=new)
    assert old_judge.end() == 0

    service.runner(1, PYTHONPATH=new)
    gates = [service.gated() for _ in range(2)]  # each of two runners stands before one
    assert sorted(slot for _, sent, _ in gates for slot in slots_of(service, sent)) == ["0", "1"]
    for waiting, sent, _ in gates:
        waiting.open()
        service.one_verdict(sent)
    later = [service.post() for _ in range(4)]
    tasks = [(flying, flying_task), *((sent, task) for _, sent, task in gates), *later]
    for sent, task in tasks:
        verdict = service.one_verdict(sent)
        assert service.result(task)["verdict_id"] == verdict["verdict_id"]
        assert len(slots_of(service, sent)) == 1
    assert len(service.rows(EvidenceRow)) == len(tasks)
    assert old_runner.process.poll() is None
