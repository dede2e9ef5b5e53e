"""A reference that was measured between runs: what it saves where two blocks pass, and that it decides nothing else."""

import subprocess
import sys
import textwrap
from functools import partial

import pytest

from checks.registry import Registry
from grader_service.host.facts import usable_cpus
from grader_service.ingest.artifact import artifact_at
from grader_service.labs.catalogue import load_lab
from grader_service.measure import graph_timing
from grader_service.measure.interference import interference_monitor_with
from grader_service.measure.kept_references import LEAST_LEARNERS, KeptReferences
from grader_service.measure.measuring import measure
from grader_service.measure.reference_run import time_reference
from grader_service.model.evidence import Need, PodRole, RunTask
from grader_service.model.measurement import Arm
from grader_service.run.execution import execute
from grader_service.run.progress import Silent
from sandbox.process.runner import ProcessRunner
from tests.e2e.submissions import COMMON, GRAPH
from tests.hand_clock import HandClock
from tests.host.gpu.memory import InMemoryGpu

# Far from any ratio that a host shows: the first passes by two blocks everywhere, the second fails by two.
EASY, HARD = 0.01, 100.0
FRESH_S = 600.0

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.alone]

SUBMISSION = (
    COMMON
    + GRAPH
    + """
from torchvision import datasets, transforms

transform = transforms.Compose([transforms.Resize((96, 128)), transforms.ToTensor()])
loader = torch.utils.data.DataLoader(datasets.ImageFolder(dataset_dir, transform), batch_size=16, num_workers=1)


@pipeline_def(num_threads=2, device_id=None, batch_size=16)
def pipeline(folder):
    jpegs, labels = fn.readers.file(file_root=folder, name="Reader")
    images = fn.resize(fn.decoders.image(jpegs, device="cpu"), resize_x=128, resize_y=96)
    return fn.crop_mirror_normalize(images, std=[255.0] * 3, output_layout="CHW"), labels


dali_iter = DALIGenericIterator(pipeline(dataset_dir), ["data", "label"], reader_name="Reader")
first_batch = next(iter(dali_iter))
"""
)


NEEDS = (Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM, Need.MEASUREMENT)


@pytest.fixture
def run(tmp_path, state_dir):
    """`run(references, threshold)` executes the submission with short windows; returns its measurement and its pods."""
    path = tmp_path / "submission.py"
    path.write_text(textwrap.dedent(SUBMISSION))
    lab = load_lab("dali-pipelines", Registry())
    plan = lab.measurement.model_copy(update={"block_s": 0.4, "glaring": 2.0, "looks": (4,), "extension_blocks": 0})
    lab = lab.model_copy(update={"measurement": plan})
    number = iter(range(100))

    def once(references, threshold, learner="ada"):
        outcome = execute(
            artifact_at(path),
            lab,
            RunTask(needs=NEEDS, threshold=threshold),
            ProcessRunner(state_dir),
            "cpu",
            Silent(),
            run_id=f"run{next(number)}",
            measure=partial(measure, references=references),
            submitter=learner,
        )
        assert outcome.evidence.measurement is not None, outcome.evidence.clean_room
        return outcome.evidence

    return once


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def references(state_dir, clock):
    runner = ProcessRunner(state_dir)
    return KeptReferences(lambda task: time_reference(runner, task, "cpu", None), FRESH_S, clock=clock)


@pytest.fixture
def screened(run, references, clock):
    """`screened(threshold)` is the evidence of a run that was held against a kept reference, after others without."""
    for number in range(LEAST_LEARNERS):
        measured = run(references, EASY, f"learner-{number}").measurement
        assert measured.kept_reference is None
        assert Arm.DECLARED in {window.arm for window in measured.blocks[0].windows}

    def once(threshold):
        for _ in range(5):  # whoever else uses this machine may contaminate the reference, which is then not kept
            clock.now += FRESH_S
            assert references.refresh()
            evidence = run(references, threshold)
            if evidence.measurement.kept_reference is not None or evidence.measurement.screened:
                return evidence
        pytest.fail("the reference could not be measured in five tries: this machine is never quiet")

    return once


def test_a_kept_reference_saves_its_windows_where_two_blocks_pass(screened):
    """Two learners show the job, the reference is measured, the third needs none."""
    evidence = screened(EASY)
    measured = evidence.measurement
    assert measured.decision.outcome == "passed"
    assert {window.arm for block in measured.blocks for window in block.windows} == {Arm.DALI, Arm.LEARNER}
    fair = next(report for report in measured.arms if report.arm is Arm.FAIR)
    assert fair.images_per_s == measured.kept_reference.images_per_s > 0
    assert "not timed in this run" in fair.notes[0]
    assert measured.screened == ()
    assert measured.graph.problem is None
    assert measured.content is None
    assert {pod.role for pod in evidence.run.pods} >= {PodRole.LEARNER, PodRole.CLEAN_ROOM}


def test_what_two_blocks_do_not_pass_is_measured_in_full(screened, monkeypatch):
    """A process of the reference that comes to the GPU after the screen is nobody foreign: it contaminates no block."""
    gpu = InMemoryGpu()
    with_references = graph_timing.add_references

    def arrive(*arguments):
        with_references(*arguments)
        gpu.processes = [1]  # not of this grader, as the pods of Docker are not

    monkeypatch.setattr(graph_timing, "add_references", arrive)
    monkeypatch.setattr(graph_timing, "interference_monitor", lambda cpus, _gpu: interference_monitor_with(cpus, gpu))
    measured = screened(HARD).measurement
    assert measured.kept_reference is None
    assert len([block for block in measured.screened if block.spoiled is None]) == 2
    assert {window.arm for window in measured.screened[0].windows} == {Arm.DALI, Arm.LEARNER}
    assert Arm.DECLARED in {window.arm for window in measured.blocks[0].windows}
    assert not any("not of this run" in (block.spoiled or "") for block in measured.blocks)
    assert measured.decision.outcome != "passed"  # nor failed: no host shows a hundredfold


def test_a_reference_with_company_is_not_kept(run, references):
    """Others on its processors would make its rate too low for a quiet hour, and a graph look better than it is."""
    for number in range(LEAST_LEARNERS):
        run(references, EASY, f"learner-{number}")
    cpus = usable_cpus(8)
    company = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in cpus]
    try:
        assert references.refresh()
    finally:
        for process in company:
            process.kill()
            process.wait()
    measured = run(references, EASY).measurement
    assert measured.kept_reference is None
    assert Arm.DECLARED in {window.arm for window in measured.blocks[0].windows}
