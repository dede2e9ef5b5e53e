"""Who owns a run, and what a sweep may take away."""

import errno
import gc
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest

from sandbox import run_folder
from sandbox.run_folder import RunFolder, dead_runs, is_live, remove_tree
from tests.sandbox.owner import another_grader

NOBODY = 65534
ANY_USERS_PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
"""Another user may not be allowed to enter the folder of this interpreter."""
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")


@pytest.fixture
def public_code():
    """A copy of the package where any user may read it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(
            Path(run_folder.__file__).parent, Path(folder) / "sandbox", ignore=shutil.ignore_patterns("__pycache__")
        )
        yield folder


@pytest.fixture
def run(state_dir):
    """A run that this process owns."""
    folder = RunFolder(state_dir, "run-1")
    folder.create()
    yield folder
    folder.remove()


def test_a_run_has_its_folders(run):
    """The guest's code is there; only the owner may enter the outermost folder, and pods' uids read the others."""
    assert (run.code / "grader_guest" / "boot.py").is_file()
    assert stat.S_IMODE(run.root.stat().st_mode) == 0o700
    for folder in (run.submission, run.shards, run.code, run.link("learner-0")):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_the_umask_does_not_matter(state_dir):
    """Neither a strict one nor a lax one."""
    for mask in (0o077, 0o000):
        before = os.umask(mask)
        try:
            folder = RunFolder(state_dir, f"run-{mask}")
            folder.create()
            link = folder.link("a")
        finally:
            os.umask(before)
        assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
        assert stat.S_IMODE(link.stat().st_mode) == 0o755
        folder.remove()


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


def test_removing_twice_is_no_error(run):
    """And frees every descriptor."""
    run.remove()
    gc.collect()  # what others left behind would be closed in between
    before = psutil.Process().num_fds()
    run.remove()
    assert psutil.Process().num_fds() == before


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


def test_a_run_that_cannot_be_made_leaves_nothing(state_dir, monkeypatch):
    """No folder, no descriptor."""

    def full(folder):
        (folder / "grader_guest").mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sandbox.run_folder.install_guest_code", full)
    gc.collect()  # what others left behind would be closed in between
    before = psutil.Process().num_fds()
    with pytest.raises(OSError, match="No space left"):
        RunFolder(state_dir, "run-3").create()
    assert not (state_dir / "runs" / "run-3").exists()
    assert psutil.Process().num_fds() == before


def test_a_state_folder_that_is_a_file(tmp_path):
    """Is the file system's error, unchanged."""
    (tmp_path / "state").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        RunFolder(tmp_path / "state", "run-1").create()


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
    folders = [RunFolder(state_dir, f"busy-{number}") for number in range(80)]
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


@AS_ROOT
def test_another_users_run_is_left_alone(state_dir, run, public_code):
    """What cannot be examined may be live: only a missing lock proves that a run is dead."""
    state_dir.chmod(0o755)
    program = f"from pathlib import Path; from sandbox.run_folder import is_live; print(is_live(Path({str(state_dir)!r}), 'run-1'))"  # noqa: E501
    answer = subprocess.run(
        [ANY_USERS_PYTHON, "-c", program],
        cwd=public_code,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        check=True,
        capture_output=True,
        text=True,
    )
    assert answer.stdout == "True\n"


def test_a_grader_out_of_descriptors_sweeps_nothing(state_dir, run, monkeypatch):
    """An error that says nothing about the run is no proof either."""

    def fail(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(run_folder.fcntl, "flock", fail)
    assert is_live(state_dir, "run-1")


def test_rights_that_were_taken_away(tmp_path, public_code):
    """A learner's process may have locked its own folders; links in them are not followed."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    deep = tmp_path / "run" / "workspace" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    (deep / "link").symlink_to(outside)
    program = (
        f"import sys; sys.path.insert(0, {public_code!r})\n"
        "from pathlib import Path; from sandbox.run_folder import remove_tree\n"
        f"print(remove_tree(Path({str(tmp_path / 'run')!r})))"
    )
    options = {}
    if os.geteuid() == 0:  # root needs no rights
        for path in [tmp_path, *tmp_path.rglob("*")]:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        for parent in tmp_path.parents:
            if parent == Path(tempfile.gettempdir()):
                break
            parent.chmod(0o755)
        options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    deep.chmod(0)
    deep.parent.chmod(0o555)
    answer = subprocess.run([ANY_USERS_PYTHON, "-c", program], check=True, capture_output=True, text=True, **options)
    assert answer.stdout == "True\n"
    assert not (tmp_path / "run").exists()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
