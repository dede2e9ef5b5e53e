"""Pods that wait with torch, torchvision and DALI loaded, as those of submissions do."""

import textwrap
import time

import pytest

from grader_service.ingest.artifact import artifact_at, prepare
from grader_service.labs.specs import lab_text, read_lab
from grader_service.run import learner
from grader_service.run.dialogue import Stopped
from grader_service.run.pod_set import AHEAD
from tests.sandbox import owner
from tests.sandbox.owner import LIMITS, OTHER_LIMITS, drill
from tests.sandbox.prepared_runs import FULL_S, Counting, guests, pooled, prepared, shown_by_prepared
from tests.sandbox.test_conformance import behaviours

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def real_imports(monkeypatch):
    """As in a run that measures."""
    monkeypatch.setattr(owner, "IMPORTS", AHEAD)


@behaviours("a_paused_pod_stands_still", "daemons_do_not_survive")
def test_pods_that_wait_with_their_imports_done(runner, behaviour):
    """Threads and memory of three large libraries change nothing of what a pod must do."""
    shown_by_prepared(runner, behaviour)


def test_imports_do_not_go_on_beside_a_measurement(process_runner):
    """Whoever times something finds its processors free, however far the imports have come."""
    counting = Counting(process_runner)
    with prepared(counting, drill(memory_mib=4096)) as (warm, _):
        waiting = counting.pods[-1]
        with warm.open_run("other", OTHER_LIMITS) as space, space.quiet():
            before = _processor_s(waiting)
            time.sleep(2.0)
            after = _processor_s(waiting)
            # A thread that is stopped ends what the kernel does for it; imports that go on take all of a processor.
            assert after - before < 0.3


def _processor_s(pod):
    """Processor time that the guests of a process pod have had."""
    return sum(sum(one.cpu_times()[:2]) for one in guests(pod))


def test_a_submission_finds_its_imports_done(process_runner, tmp_path):
    """The learner's pod has torch, torchvision and DALI loaded, and what stands in for a GPU still applies."""
    lab = read_lab(lab_text("dali-pipelines"), "lab")
    spec = drill(program="learner.main", memory_mib=4096, pids=256, submission=True)
    source = tmp_path / "submission.py"
    source.write_text(
        textwrap.dedent(
            """
            import sys
            where_dali_wins = [f"{name}:{name in sys.modules}" for name in ("torch", "torchvision", "nvidia.dali.fn")]
            import torch
            where_dali_wins.append(f"cuda:{torch.cuda.is_available()}")
            """
        )
    )
    found = []
    with pooled(process_runner) as (warm, pool):
        for number in range(2):
            with warm.open_run(f"run-{number}", LIMITS) as space:
                submission = prepare(artifact_at(source), space.submission_dir)
                found.append(learner.discover(space.start(spec), submission, space.paths, lab.limits, "cpu"))
            assert pool.waits(FULL_S)
    cold, ahead = found
    assert not isinstance(cold, Stopped)
    assert not isinstance(ahead, Stopped)
    assert _said(cold) == ["torch:False", "torchvision:False", "nvidia.dali.fn:False", "cuda:True"]
    assert _said(ahead) == ["torch:True", "torchvision:True", "nvidia.dali.fn:True", "cuda:True"]
    assert ahead.discovery.versions["torch"] == cold.discovery.versions["torch"]


def _said(found):
    return list(found.discovery.where_dali_wins.items)
