"""Who owns a run, and what a sweep may take away."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from sandbox import run_folder
from sandbox.run_folder import RunFolder, dead_runs, is_live, leaves, remove_own, remove_tree
from tests.sandbox.owner import another_grader

NOBODY = 65534
ANY_USERS_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
"""Another user may not be allowed to enter the folder of this interpreter."""


@pytest.fixture
def another_user():
    """What another user's Python says of an expression about `sandbox.run_folder`; the same user's where we cannot."""

    def says(expression):
        program = f"from pathlib import Path; from sandbox import run_folder; print({expression})"
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        return subprocess.check_output([ANY_USERS_PYTHON, "-c", program], cwd=folder, text=True, **who)

    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(
            Path(run_folder.__file__).parent, Path(folder) / "sandbox", ignore=shutil.ignore_patterns("__pycache__")
        )
        yield says


@pytest.fixture
def run(state_dir):
    """A run that this process owns."""
    folder = RunFolder(state_dir, "run-1")
    folder.create()
    yield folder
    folder.remove()


@pytest.mark.parametrize("mask", [0o077, 0o022, 0o000])
def test_a_shared_run_has_its_folders(umask, mask, state_dir):
    """Its group looks in, writes to three folders alone, and finds no link; what it wrote is its own to remove."""
    umask(mask)
    run = RunFolder(state_dir, "run-1", shared=True)
    run.create()
    link = run.link("learner-0")
    modes = {
        run.root: 0o750,
        **dict.fromkeys(leaves(run.root), 0o775),
        run.code: 0o755,
        link.parent: 0o700,
        link: 0o755,
    }
    assert {folder: stat.S_IMODE(folder.stat().st_mode) for folder in modes} == modes
    (run.shards / "0").mkdir()
    run.remove()
    assert sorted(path.relative_to(run.root) for path in run.root.rglob("*")) == [Path("shards"), Path("shards/0")]
    assert [folder.name for folder in dead_runs(state_dir)] == ["run-1"]
    assert not remove_own(run.root)
    (run.shards / "0").rmdir()
    assert remove_own(run.root)


@pytest.mark.parametrize("mask", [0o077, 0o022, 0o000])
def test_a_run_has_its_folders(umask, mask, request):
    """Whatever the umask: the guest's code is there, only the owner may enter the outermost, pods read the others."""
    umask(mask)
    run = request.getfixturevalue("run")
    assert (run.code / "grader_guest" / "boot.py").is_file()
    assert stat.S_IMODE(run.root.stat().st_mode) == 0o700
    for folder in (run.submission, run.shards, run.code, run.link("learner-0")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.parametrize("run_id", ["", "..", "../x", "a/b", ".hidden", "-x", "a b", "x" * 129, "a\n", "ü", "a;b"])
def test_a_run_id_is_no_path(state_dir, run_id):
    """Ids are made by the grader; one that is not is a mistake of ours, found before anything is made."""
    with pytest.raises(ValueError, match="is not a run id"):
        RunFolder(state_dir, run_id)
    assert list(state_dir.iterdir()) == []


def test_a_run_is_live_while_its_owner_is(state_dir, run):
    """Also for the process that owns it, and no longer once it is removed."""
    assert is_live(state_dir, "run-1")
    assert list(dead_runs(state_dir)) == []
    run.remove()
    assert not is_live(state_dir, "run-1")
    assert not run.root.exists()


def test_removing_twice_is_no_error(run, nothing_stays_open):
    """And frees every descriptor."""
    run.remove()
    with nothing_stays_open():
        run.remove()


def test_a_killed_owner_leaves_a_dead_run(state_dir):
    """The kernel frees its lock, whatever killed it."""
    with another_grader("folder", state_dir, "run-2") as owner:
        assert is_live(state_dir, "run-2")
        assert list(dead_runs(state_dir)) == []
        owner.kill()
        owner.wait()
        assert not is_live(state_dir, "run-2")
        assert list(dead_runs(state_dir)) == [state_dir / "runs" / "run-2"]
    assert remove_tree(state_dir / "runs" / "run-2")


def test_a_run_is_opened_once(state_dir, run):
    """A second one of the same id fails, and takes nothing of the first one's away."""
    second = RunFolder(state_dir, "run-1")
    with pytest.raises(FileExistsError):
        second.create()
    second.remove()
    assert run.submission.is_dir()
    assert is_live(state_dir, "run-1")


def test_a_run_that_cannot_be_made_leaves_nothing(state_dir, monkeypatch, nothing_stays_open):
    """No folder, no descriptor."""

    def full(folder):
        (folder / "grader_guest").mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sandbox.run_folder.install_guest_code", full)
    with nothing_stays_open(), pytest.raises(OSError, match="No space left"):
        RunFolder(state_dir, "run-3").create()
    assert not (state_dir / "runs" / "run-3").exists()


def test_nothing_to_sweep(tmp_path):
    """A state folder that was never used is no error, and stays as it is."""
    assert list(dead_runs(tmp_path)) == []
    assert list(dead_runs(tmp_path / "missing")) == []
    assert not is_live(tmp_path / "missing", "run-1")


def test_a_run_that_is_just_being_made_is_not_dead(state_dir):
    """Many graders start runs while others sweep: no run is ever taken for a leftover."""
    stop = threading.Event()
    taken = []

    def sweep():
        while not stop.is_set():
            taken.extend(dead_runs(state_dir))

    sweepers = [threading.Thread(target=sweep) for _ in range(3)]
    folders = [RunFolder(state_dir, f"busy-{number}") for number in range(30)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for folder in folders:
            folder.create()
    finally:
        stop.set()
        for sweeper in sweepers:
            sweeper.join()
    assert taken == []
    assert all(is_live(state_dir, folder.root.name) for folder in folders)
    for folder in folders:
        folder.remove()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_users_run_is_left_alone(state_dir, run, another_user):
    """What cannot be examined may be live: only a missing lock proves that a run is dead."""
    state_dir.chmod(0o755)
    assert another_user(f"run_folder.is_live(Path({str(state_dir)!r}), 'run-1')") == "True\n"


def test_a_grader_out_of_descriptors_sweeps_nothing(state_dir, run, monkeypatch):
    """An error that says nothing about the run is no proof either."""

    def fail(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(run_folder.fcntl, "flock", fail)
    assert is_live(state_dir, "run-1")


def test_rights_that_were_taken_away(tmp_path, another_user):
    """A learner's process may have locked its own folders; links in them are not followed."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    deep = tmp_path / "run" / "workspace" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    (deep / "link").symlink_to(outside)
    if os.geteuid() == 0:  # root needs no rights
        for path in [tmp_path, *tmp_path.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        for parent in tmp_path.parents:
            if parent == Path(tempfile.gettempdir()):
                break
            parent.chmod(0o755)
    deep.chmod(0)
    deep.parent.chmod(0o555)
    assert another_user(f"run_folder.remove_tree(Path({str(tmp_path / 'run')!r}))") == "True\n"
    assert not (tmp_path / "run").exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
