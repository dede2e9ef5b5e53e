"""The runner without walls: what it leaves behind (nothing), and what it does when something of ours is missing."""

import contextlib
import os
import secrets
import signal
from pathlib import Path

import psutil
import pytest

from grader_service.errors import SandboxUnavailable
from sandbox.api import Ending, Scratch
from sandbox.process import runner as process_runner_module
from sandbox.process import supervisor as program
from sandbox.process.runner import ProcessRunner
from tests.sandbox.owner import LIMITS, another_grader, ask, drill, talking
from tests.waiting import wait_for

RUN = f"run-{secrets.token_hex(6)}"
"""An id that nobody else's processes have anything to do with."""


def of_run(run_id):
    """Processes of this run, whatever became of their parents: its folder stands in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            inside = any(run_id in value for value in process.environ().values())
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.integration
@pytest.mark.parametrize(("folder", "links"), [("s", 0), ("long" * 30, 1)])
def test_a_killed_grader_takes_its_pods_along(state_dir, folder, links):
    """Daemons included: every supervisor notices that nobody holds its orders any more.

    A sweep removes the folder, and the short name that it has where its path is long.
    """
    state_dir = state_dir / folder
    runner = ProcessRunner(state_dir)
    with another_grader("process", state_dir, "run-killed") as grader:
        assert len(of_run("run-killed")) >= 3  # supervisor, guest, daemon
        assert runner.sweep() == 0
        grader.kill()
        grader.wait()
        wait_for(lambda: not of_run("run-killed"), 5.0, 0.05)
    assert len(links_into(state_dir)) == links
    assert runner.sweep() == 1
    assert runner.sweep() == 0
    assert list((state_dir / "runs").iterdir()) == links_into(state_dir) == []


@pytest.mark.parametrize("python", ["/nonexistent/python", "/etc/passwd", "false"])
def test_an_interpreter_that_does_not_run_is_our_failure(state_dir, python):
    """No learner is told that their code ended: it never started."""
    with ProcessRunner(state_dir, python=python).open_run(RUN, LIMITS) as space:
        pod = space.start(drill())
        with pytest.raises(SandboxUnavailable, match="never connected"):
            pod.receive(30)
    assert of_run(RUN) == []


def test_an_interpreter_that_is_not_there_is_seen_before_a_pod(process_runner, state_dir):
    """A runner that looks at its sandbox knows it."""
    process_runner.look()
    with pytest.raises(SandboxUnavailable, match="GRADER_LAB_PYTHON names another"):
        ProcessRunner(state_dir, python="/nowhere/python").look()


def test_a_state_folder_that_cannot_be_used(tmp_path):
    """Is our failure, and names the folder."""
    (tmp_path / "state").write_text("a file")
    with pytest.raises(SandboxUnavailable, match=r"state.*Not a directory"):
        ProcessRunner(tmp_path / "state").open_run(RUN, LIMITS).__enter__()


@pytest.mark.integration
def test_a_supervisor_that_answers_late(process_runner, monkeypatch):
    """Its answer is not taken for that to a later question, and its pod ends as it would have."""
    monkeypatch.setattr(process_runner_module, "_OUTPUT_S", 0.3)
    with talking(process_runner, RUN) as pod:
        ask(pod, kind="say", text="one", stream="stdout")
        wait_for(lambda: pod.output().endswith("one\n"), 10)
        supervisor = pod._handle._supervisor
        os.kill(supervisor.pid, signal.SIGSTOP)
        assert pod.output() == pod.output() == ""
        os.kill(supervisor.pid, signal.SIGCONT)
        pod.pause()
        assert program.stands(psutil.Process(supervisor.pid).children()[0].pid)
        pod.resume()
        ask(pod, kind="say", text="two", stream="stdout")
        wait_for(lambda: pod.output().endswith("one\ntwo\n"), 10)
        assert pod.end().ending is Ending.COMPLETED
        assert pod.output().endswith("one\ntwo\n")


def test_a_run_is_opened_once(process_runner, state_dir):
    """A second one of the same id is refused, and the first one lives on."""
    with process_runner.open_run(RUN, LIMITS) as space:
        pod = space.start(drill())
        with pytest.raises(SandboxUnavailable, match="exists"):
            process_runner.open_run(RUN, LIMITS).__enter__()
        assert ask(pod, kind="echo", value=1).body["value"] == 1
        assert space.submission_dir.is_dir()


def test_a_guest_ends_with_its_supervisor(process_runner):
    """A kernel short of memory may kill either of them: the pod ends, and says that nobody knows how."""
    with talking(process_runner, RUN) as pod:
        guests = of_run(RUN)
        supervisor = next(process for process in guests if "process/supervisor" in " ".join(process.cmdline()))
        supervisor.send_signal(signal.SIGKILL)
        assert pod.receive(20) is Ending.EXITED
        record = pod.end()
        assert record.exit_code is None
        assert "did not answer" in record.log_tail
        wait_for(lambda: not of_run(RUN), 5.0, 0.05)


def test_a_hanging_pod_is_ended_with_the_run(process_runner):
    """An exception in between changes nothing about it."""
    with pytest.raises(RuntimeError, match="ours"), process_runner.open_run(RUN, LIMITS) as space:
        for _ in range(2):
            space.start(drill()).send({"kind": "hang"})
        raise RuntimeError("ours")
    assert of_run(RUN) == []
    assert not space.submission_dir.exists()


def test_nothing_is_left_open(process_runner, nothing_stays_open):
    """Ten runs later the grader has as many descriptors and children as before."""

    def run():
        with talking(process_runner, RUN):
            pass

    def children():  # by id alone: what another test left is here too, ended or not
        return {child.pid for child in psutil.Process().children()}

    run()
    before = children()
    with nothing_stays_open():
        for _ in range(5):
            run()
    assert children() <= before


def test_only_harmless_names_of_the_environment_are_passed_on(process_runner, monkeypatch):
    """Keys and Python's own settings stay with the grader; a pod's own variables arrive."""
    for name in ("AWS_SECRET_ACCESS_KEY", "PYTHONSTARTUP", "LD_PRELOAD", "CELERY_BROKER_URL"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with process_runner.open_run(RUN, LIMITS) as space:
        names = set(ask(space.start(drill(environment={"EXTRA": "1"})), kind="facts").body["environment"])
    assert names - {"PATH", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "LC_CTYPE"} == {
        "CUDA_VISIBLE_DEVICES",
        "EXTRA",
        "GRADER_DATA_DIR",
        "HOME",
        "LANG",
        "MPLBACKEND",
        "TMPDIR",
        "XDG_CACHE_HOME",
    }


def test_folders_that_a_learner_locked(process_runner, state_dir):
    """Are removed all the same."""
    with process_runner.open_run(RUN, LIMITS) as space:
        locked = Path(space.paths.workspace) / "locked"
        (locked / "inner").mkdir(parents=True)
        os.chmod(locked, 0)
    assert list((state_dir / "runs").iterdir()) == []


@pytest.mark.parametrize("scratch", [Scratch.READ_WRITE, Scratch.NONE])
@pytest.mark.parametrize("folder", ["s", "state-of-a-user-with-a-long-name/" * 3])
def test_workers_can_talk_however_long_the_state_folders_path_is(tmp_path, folder, scratch):
    """A socket's path has 107 bytes at most; a DataLoader whose workers cannot make theirs waits for ever."""
    with ProcessRunner(tmp_path / folder).open_run("run-long", LIMITS) as space:
        assert ask(space.start(drill(scratch=scratch)), kind="listen").body["problem"] == ""
    assert links_into(tmp_path) == []


def links_into(folder):
    """Short names of runs below a folder; those of others come and go meanwhile."""
    found = []
    for link in Path("/tmp").glob("grader-run-*"):
        with contextlib.suppress(OSError):
            found += [link] if str(folder) in str(link.readlink()) else []
    return found
