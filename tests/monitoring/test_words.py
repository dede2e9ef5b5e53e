"""What a worker says beside whether it is ready: chores that fail, and how full its disks are."""

import errno
import os
from types import SimpleNamespace

import pytest

from grader_service.host.disk_use import disk_use
from grader_service.service.readiness import Readiness
from grader_service.service.sweeper import Sweeper
from grader_service.store import workers
from grader_service.store.artifacts import ArtifactStore
from tests.hand_clock import HandClock
from tests.monitoring.scrapes import JUDGE, fail_a_chore


def said(store):
    """Of the one worker."""
    (worker,) = workers.workers(store)
    return worker


def test_a_chore_that_fails_is_said_until_it_works_again(store, tmp_path):
    """With its last error, and from its first failure in a row to its last one; the worker is ready meanwhile."""
    sweeper = fail_a_chore(store, tmp_path, 0, 5, 10)
    assert said(store).chores == {"deliver": {"for_s": 10.0, "error": "OSError: no room"}}
    assert said(store).state == "ready"
    sweeper.once()  # it works; the word came before
    sweeper.once()
    assert said(store).chores == {}


def test_only_failures_in_a_row_count():
    """Each chore by itself, from the first one after it worked last."""
    clock, errors = HandClock(), iter([OSError("a"), OSError("b"), None, OSError("c"), OSError("d")])

    def chore():
        if (error := next(errors)) is not None:
            raise error

    sweeper = Sweeper([("one", chore), ("other", lambda: None)], 1.0, clock)
    found = []
    for _ in range(5):
        clock.now += 10.0
        sweeper.once()
        found.append({name: (failing["for_s"], failing["error"]) for name, failing in sweeper.failing.items()})
    row = [(0.0, "OSError: a"), (10.0, "OSError: b"), None, (0.0, "OSError: c"), (10.0, "OSError: d")]
    assert found == [{} if said is None else {"one": said} for said in row]


def test_a_chore_that_does_not_end_is_said():
    """After a minute, and for as long as it has not ended; one that failed before has failed since then."""
    clock, errors, found = HandClock(), iter([OSError("a"), None, None]), []

    def chore():
        for _ in range(3):
            found.append(sweeper.failing)
            clock.now += 30.0
        found.append(sweeper.failing)
        if (error := next(errors)) is not None:
            raise error

    sweeper = Sweeper([("one", chore)], 1.0, clock)
    for _ in range(3):
        sweeper.once()
        found.append(sweeper.failing)
    hangs = [("it has not ended for 60 s", 60.0), ("it has not ended for 90 s", 90.0)]
    assert [[(one["error"], one["for_s"]) for one in said.values()] for said in found] == [
        [], [], [hangs[0]], [hangs[1]], [("OSError: a", 0.0)],
        [("OSError: a", 0.0)], [("OSError: a", 0.0)], [hangs[0]], [hangs[1]], [],
        [], [], [hangs[0]], [hangs[1]], [],
    ]  # fmt: skip


def a_file_system(monkeypatch, **figures):
    """What `statvfs` says of any folder."""
    usual = {"f_blocks": 1000, "f_bfree": 500, "f_bavail": 400, "f_files": 100, "f_ffree": 90, "f_favail": 90}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**(usual | figures)))


@pytest.mark.parametrize(
    ("figures", "ratio"),
    [
        ({}, 500 / 900),  # as `df` counts: what only root may write is neither used nor free
        ({"f_bfree": 100, "f_bavail": 0}, 1.0),
        ({"f_ffree": 5, "f_favail": 5}, 0.95),
        ({"f_files": 0, "f_ffree": 0, "f_favail": 0}, 500 / 900),
        ({"f_blocks": 0, "f_bfree": 0, "f_bavail": 0}, 0.1),
    ],
    ids=["bytes", "none for us", "inodes", "no inodes counted", "no bytes counted"],
)
def test_how_full_a_disk_is(tmp_path, monkeypatch, figures, ratio):
    """Of bytes or of inodes, whichever is more."""
    a_file_system(monkeypatch, **figures)
    assert disk_use({"state": tmp_path}) == {"state": pytest.approx(ratio)}


def test_a_disk_that_cannot_be_looked_at_is_absent(tmp_path, monkeypatch):
    """A folder that is not there yet is no such case."""
    assert 0.0 < disk_use({"state": tmp_path / "not" / "there"})["state"] <= 1.0

    def stale(_):
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os, "statvfs", stale)
    assert disk_use({"state": tmp_path}) == {}


def test_a_worker_says_how_full_its_disks_are(store, tmp_path, monkeypatch):
    """Of its state folder, and of artifacts that lie in a folder; an object store has no disk of ours."""
    a_file_system(monkeypatch, f_bfree=50, f_bavail=50)
    folder = ArtifactStore(f"file://{tmp_path}/artifacts").folder
    assert folder == tmp_path / "artifacts"
    assert ArtifactStore("memory://artifacts").folder is None
    Readiness(JUDGE, store, tmp_path, (), (), folders={"artifacts": folder}).look()
    assert said(store).disk == {"state": 0.95, "artifacts": 0.95}
