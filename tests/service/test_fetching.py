"""Where a runner keeps the artifact that it fetched for a run."""

import multiprocessing
import tempfile
import time

import pytest

from checks.probe_files import ProbeFiles
from grader_service.run.execution import RunOutcome
from grader_service.service import runner
from grader_service.service.pipeline import StageEnd
from sandbox.process.runner import ProcessRunner
from sandbox.run_folder import is_live
from tests.factories import a_run, an_evidence
from tests.service.harness import QUICK
from tests.waiting import wait_for

pytestmark = pytest.mark.integration


def test_an_artifact_lies_beside_the_runs(local, monkeypatch, tmp_path):
    """On the disk that holds what a submission unpacks to: a container's /tmp is smaller than an artifact may be."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    runs = local.state_dir / "runs"
    seen = []

    def execute(artifact, *_, run_id, **__):
        seen.append(artifact.path.read_bytes())
        assert artifact.path.parent.parent == runs
        assert is_live(local.state_dir, artifact.path.parent.name)
        return RunOutcome(an_evidence(run=a_run(run_id=run_id)), {})

    monkeypatch.setattr(runner, "execute", execute)
    local.submit()
    assert local.run_all(local.deps()) == [StageEnd.STORED]
    assert seen == [QUICK.encode()]
    assert list(runs.iterdir()) == []


def test_probes_come_with_their_source(local, monkeypatch):
    """As it was when the run was queued, read from beside the artifact."""
    seen = {}

    def execute(*_, run_id, probes, **__):
        seen.update({task.ref.id: task.source for task in probes})
        return RunOutcome(an_evidence(run=a_run(run_id=run_id)), {})

    monkeypatch.setattr(runner, "execute", execute)
    local.submit(lab="dali-classification-training", steps=["train"])
    assert local.run_all(local.deps()) == [StageEnd.STORED]
    assert {"training_loop", "placement_table"} <= set(seen)
    assert seen == {name: ProbeFiles().load(name).source for name in seen}


def test_a_killed_runner_leaves_its_artifact_to_the_next_sweep(local, monkeypatch):
    """Not to somebody who wonders why the disk is full; one that is in use stays."""
    monkeypatch.setattr(runner, "execute", lambda *_, **__: time.sleep(600))
    local.submit()
    killed = multiprocessing.get_context("fork").Process(target=local.run_all, args=(local.deps(),))
    killed.start()
    runs = local.state_dir / "runs"
    wait_for(lambda: list(runs.glob("*/artifact")), 30)
    sandbox = ProcessRunner(local.state_dir)
    assert sandbox.sweep() == 0
    killed.kill()
    killed.join()
    assert sandbox.sweep() == 1
    assert list(runs.iterdir()) == []


def test_a_state_folder_that_cannot_be_written_is_no_failure_of_the_learners(local, tmp_path):
    """The run is dead-lettered with the folder's name."""
    (tmp_path / "state").write_text("a file")
    submission_id = local.submit()
    ends = local.run_all(local.deps(state_dir=tmp_path / "state", retry=runner.RetryPolicy(max_attempts=1)))
    assert ends == [StageEnd.FAILED]
    assert f"no artifact can be kept in {tmp_path / 'state'}" in local.run(submission_id).last_error
