"""A reference that was measured between runs: what it spares a glaring run, and that it decides nothing else."""

import textwrap

import pytest

from checks.registry import Registry
from grader_service.grading.kept_references import LEAST_RUNS, KeptReferences
from grader_service.grading.progress import Silent
from grader_service.grading.run import execute
from grader_service.ingest.artifact import measure
from grader_service.labs.catalogue import load_lab
from grader_service.model.evidence import Need, PodRole
from grader_service.model.measurement import Arm
from sandbox.process_runner import ProcessRunner
from tests.e2e.submissions import COMMON, GRAPH

pytestmark = [pytest.mark.lab, pytest.mark.e2e]

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


@pytest.fixture
def run(tmp_path, state_dir):
    """`run(references, threshold)` executes the submission with short windows; returns its measurement and its pods."""
    path = tmp_path / "submission.py"
    path.write_text(textwrap.dedent(SUBMISSION))
    lab = load_lab("dali-pipelines", Registry())
    plan = lab.measurement.model_copy(update={"block_s": 0.4, "glaring": 2.0, "looks": (4,), "extension_blocks": 0})
    lab = lab.model_copy(update={"measurement": plan})
    number = iter(range(100))

    def once(references, threshold):
        outcome = execute(
            measure(path),
            lab,
            (Need.DISCOVERY, Need.SCAN, Need.CLEAN_ROOM, Need.MEASUREMENT),
            ProcessRunner(state_dir),
            "cpu",
            Silent(),
            run_id=f"run{next(number)}",
            threshold=threshold,
            references=references,
        )
        assert outcome.evidence.measurement is not None, outcome.evidence.clean_room
        return outcome.evidence

    return once


def test_a_kept_reference_spares_its_windows_where_the_ratio_is_glaring(run, state_dir):
    """Two runs show the job, the reference is measured, the third needs none; a failure is measured in full."""
    references = KeptReferences.on(ProcessRunner(state_dir), "cpu", None, fresh_s=3600.0)
    # Far from any ratio that a host shows: the first is a glaring pass everywhere, the second a glaring failure.
    easy, hard = 0.01, 100.0
    for _ in range(LEAST_RUNS):
        measured = run(references, easy).measurement
        assert measured.kept_reference is None
        assert Arm.DECLARED in {window.arm for window in measured.blocks[0].windows}
    assert references.refresh()

    evidence = run(references, easy)
    measured = evidence.measurement
    assert measured.decision.outcome == "passed"
    assert {window.arm for block in measured.blocks for window in block.windows} == {Arm.DALI, Arm.LEARNER}
    fair = next(report for report in measured.arms if report.arm is Arm.FAIR)
    assert fair.images_per_s == measured.kept_reference.images_per_s > 0
    assert "not timed in this run" in fair.notes[0]
    assert measured.screened == ()
    assert measured.content.identified == measured.content.delivered > 0
    assert {pod.role for pod in evidence.run.pods} >= {PodRole.LEARNER, PodRole.CLEAN_ROOM}

    measured = run(references, hard).measurement
    assert measured.kept_reference is None
    assert len(measured.screened) == 2
    assert {window.arm for window in measured.screened[0].windows} == {Arm.DALI, Arm.LEARNER}
    assert Arm.DECLARED in {window.arm for window in measured.blocks[0].windows}
    assert measured.decision.outcome != "passed"  # nor failed: no host shows a hundredfold
