"""The lab `dali-classification-training`: the reference passes every step, each failing example fails one check."""

import re

import pytest

from checks.registry import Registry
from grader_service.labs.catalogue import load_lab
from grader_service.model.verdict import Outcome, Status
from tests.e2e.conftest import EXAMPLES, checks_of

pytestmark = pytest.mark.integration

LAB = "dali-classification-training"
FOLDER = EXAMPLES / "classification"
REFERENCE = FOLDER / "reference_submission.py"
FAILING = [
    ("bgr_channels", "define", "output_contract", "output.channel_order", "output_type=types.RGB"),
    ("channels_last", "define", "output_contract", "output.layout", 'output_layout="CHW"'),
    ("last_batch_dropped", "read", "epoch_coverage", "epoch.drops_files", "LastBatchPolicy.PARTIAL"),
    ("not_shuffled", "read", "shuffle_determinism", "shuffle.off", "random_shuffle=True"),
    ("all_ranks_read_shard_zero", "read", "shard_coverage", "shards.same_shard", "pass the rank"),
    ("decoder_on_the_cpu", "decode", "gpu_decode", "decode.on_cpu", 'device="mixed"'),
    ("squashed_validation", "decode", "torchvision_agreement", "agreement.squashed", "resize_shorter=128"),
    ("drawn_once_in_python", "augment", "random_augmentation", "augmentation.constant", "fn.random.uniform"),
    ("statistics_of_zero_to_one", "normalise", "normalisation", "normalisation.scale_01", "Multiply both by 255"),
    ("labels_of_another_reader", "iterate", "label_match", "labels.mismatch", "images and labels from one"),
    ("wrong_placement", "train", "placement_table", "placement.wrong", "mixed"),
    ("no_acceptance_metric", "train", "acceptance_metric", "metric.no_metric", "images per second"),
]
"""Example, its step, the check that it fails, the code, and a part of what the feedback says to do; in order of steps,
of which none is left out."""
SHORT = {"block_s": 0.1}
"""Windows of the measurement, which no check of this lab judges."""
ADVISED = [
    ("legacy_class", "define", "legacy_pipeline", "style.legacy_class", "@pipeline_def"),
    ("optimizer_never_steps", "train", "training_loop", "training.not_falling", "optimizer.step()"),
]
"""The same for checks of what only the learner's own code can say: they are advice, and cost nothing."""


def optional_checks():
    """Checks that are advice in this lab."""
    return {check.id for step in load_lab(LAB, Registry()).steps for check in step.checks if check.optional}


def everything_passed(graded):
    """Asserts that no step, no check and no advice was left open."""
    told = {
        name: (check.code, check.feedback)
        for name, check in checks_of(graded).items()
        if not check.code.endswith(".ok")
    }
    assert told == {}
    verdict = graded.verdict
    assert (verdict.status, verdict.score, verdict.max_score) == (Status.PASSED, 100, 100), verdict.feedback
    assert [step.id for step in verdict.steps] == list(dict.fromkeys(step for _, step, *_ in FAILING))


def test_the_reference_passes_every_step(forked_runner, grade_with):
    """All checks, advice included, pass in a rehearsal, and the points add up to 100."""
    everything_passed(grade_with(forked_runner, REFERENCE, lab=LAB, measurement=SHORT))


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_left")
def test_the_reference_passes_every_step_in_docker(docker_runner, grade_with):
    """The same in isolated pods without a network, where two ranks must still find each other."""
    everything_passed(grade_with(docker_runner, REFERENCE, lab=LAB))


@pytest.mark.parametrize(("name", "step", "check", "code", "advice"), FAILING, ids=[row[0] for row in FAILING])
def test_each_failing_example_fails_for_its_reason(forked_runner, grade_with, name, step, check, code, advice):
    """One check of its step fails, with its code and with what to do; every other required check passes."""
    graded = grade_with(forked_runner, FOLDER / "failing" / f"{name}.py", (step,), lab=LAB, measurement=SHORT)
    judged = checks_of(graded)
    wrong = {
        name: (one.outcome, one.code)
        for name, one in judged.items()
        if one.outcome is not Outcome.PASSED and name not in optional_checks()
    }
    assert wrong == {check: (Outcome.FAILED, code)}, judged[check].feedback
    assert advice in judged[check].feedback
    assert graded.verdict.status is Status.FAILED


@pytest.mark.parametrize(("name", "step", "check", "code", "advice"), ADVISED, ids=[row[0] for row in ADVISED])
def test_what_is_advised_against_costs_nothing(forked_runner, grade_with, name, step, check, code, advice):
    """A check that is advice fails, its step passes with all points, and the summary says what to do."""
    graded = grade_with(forked_runner, FOLDER / "failing" / f"{name}.py", (step,), lab=LAB, measurement=SHORT)
    result = checks_of(graded)[check]
    assert (result.outcome, result.code) == (Outcome.FAILED, code)
    assert graded.verdict.status is Status.PASSED
    assert graded.verdict.score == graded.verdict.max_score
    assert advice in graded.verdict.feedback


def test_every_example_is_listed_with_its_code():
    """The table in the examples' README names each file of the folder and the code that it really gets."""
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    section = text.partition("## `dali-classification-training`")[2]
    listed = dict(re.findall(r"^\| `(\w+)\.py` \|.*\| `([a-z_.0-9]+)`", section, re.MULTILINE))
    assert listed == {row[0]: row[3] for row in (*FAILING, *ADVISED)}
    assert set(listed) == {path.stem for path in (FOLDER / "failing").glob("*.py")}


def test_the_handout_asks_for_every_name_that_the_reference_leaves():
    """Learners are told to define what the reference defines, and how many points each step has."""
    lab = load_lab(LAB, Registry())
    reference = REFERENCE.read_text(encoding="utf-8")
    names = re.findall(r"^- `(\w+)`", lab.handout, re.MULTILINE)
    assert len(names) > 8
    assert [name for name in names if not re.search(rf"^(def )?{name}\b|^ +{name} = ", reference, re.MULTILINE)] == []
    told = {
        int(number): int(points)
        for number, points in re.findall(r"^## (\d) .*\((\d+) points\)", lab.handout, re.MULTILINE)
    }
    assert told == {number: sum(check.points for check in step.checks) for number, step in enumerate(lab.steps, 1)}
