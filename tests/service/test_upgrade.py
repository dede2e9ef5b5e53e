"""A service that is at work is brought to the next version, beside workers of the one before."""

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader_service.store.engine import SCHEMA
from grader_service.store.noting import note_older
from grader_service.store.tables import EventRow, EvidenceRow, WorkerRow
from tests.conftest import fresh_database
from tests.levels.parts import ROOT
from tests.service.harness import Service, served
from tests.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LAST = "8ea51906a329a0618615d1b82307bb3ff60b8a6c"
"""The last landed commit, with schema 0011: its workers refuse newer ones at their start, and are not ready on them."""
NEXT = "9000"
_EXPANDING = f"""
import sqlalchemy as sa
from alembic import op

from grader_service.store.index_building import build_index

revision = "{NEXT}"
down_revision = "{SCHEMA}"


def upgrade():
    op.execute("alter table run add column if not exists of_the_next_version text")
    build_index("ix_of_the_next_version", "run", ["of_the_next_version"])
"""


def landed(folder: Path) -> Path:
    """The tree of `LAST`."""
    archive = subprocess.run(["git", "archive", LAST], cwd=ROOT, check=False, capture_output=True)
    if archive.returncode:
        pytest.fail(
            f"the version to upgrade from, commit {LAST}, is not in this clone's history, which CI and `make test-all` "
            f"need whole (git fetch --unshallow): {archive.stderr.decode(errors='replace').strip()}"
        )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def this(_: Path) -> Path:
    """This tree."""
    return ROOT


def coming(folder: Path) -> Path:
    """This tree with one more migration, that only adds."""
    for package in ("grader_service", "sandbox", "checks", "images"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    engine = folder / "grader_service/store/engine.py"
    engine.write_text(re.sub(r'^SCHEMA = ".*"$', f'SCHEMA = "{NEXT}"', engine.read_text(), flags=re.MULTILINE))
    (folder / f"grader_service/store/migrations/versions/{NEXT}_next.py").write_text(_EXPANDING)
    return folder


@dataclass
class Upgrade(Service):
    """A service of the older version, unless a process is told another."""

    def migrate(self) -> None:
        """As an operator of the older version did."""
        done = self.command("store", "migrate")
        assert done.returncode == 0, done.stderr

    def env_of(self, command: tuple[str, ...], **changes: str) -> dict[str, str]:
        """A version that knows of no roles works as the owner, beside one whose services have theirs."""
        env = self.env(**changes)
        knows = (Path(env["PYTHONPATH"]) / "grader_service/store/rights.py").exists()
        return super().env_of(command, **changes) if knows else env


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


@pytest.mark.parametrize(
    ("before", "after", "schema"), [(landed, this, SCHEMA), (this, coming, NEXT)], ids=["landed", "coming"]
)
def test_both_versions_work_and_nothing_is_lost_or_doubled(
    postgres, redis, tmp_path, before: Callable[[Path], Path], after: Callable[[Path], Path], schema
):
    """Runs are in flight while the schema moves on; old workers store, claim and judge after it, beside new ones."""
    folders = tmp_path / "old", tmp_path / "new"
    for folder in folders:
        folder.mkdir()
    old, new = str(before(folders[0])), str(after(folders[1]))
    with (
        fresh_database(postgres, template="template1") as url,
        served(redis, url, tmp_path, kind=Upgrade, PYTHONPATH=old) as service,
    ):
        was = service.store.schema()
        assert (was, was < schema) == ("0011" if before is landed else SCHEMA, True)
        old_judge, old_runner = service.both()
        gate, flying, flying_task = service.gated()
        migrated = service.command("store", "migrate", PYTHONPATH=new)
        assert migrated.returncode == 0, migrated.stderr
        assert service.store.schema() == schema
        if before is landed:
            wait_for(lambda: any("schema" in str(line) for line in old_runner.said("not_ready")), 20)
        else:
            assert ready_now(service) == [True, True]
            assert service.command("store", "check").returncode == 0
            assert service.command("store", "migrate").returncode == 0, "a newer schema that fits is left as it is"

        gate.open()
        service.one_verdict(flying)
        service.judge(PYTHONPATH=new)  # this once before runners: the old one cannot read what they find
        assert old_judge.end() == 0
        assert [row["noted_at"] is None for row in service.rows(EvidenceRow)] == [before is landed]

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
        while note_older(service.store):
            pass
        assert [row for row in service.rows(EvidenceRow) if row["noted_at"] is None] == []
        assert old_runner.process.poll() is None
