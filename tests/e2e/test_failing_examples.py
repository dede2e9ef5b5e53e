"""Each failing example of the lab, graded as a whole."""

import pytest

from grader_service.model.verdict import Outcome
from tests.e2e.conftest import EXAMPLES, PLAN, check_of

HALF = 0.5
"""A ratio that what is slow here is far from, on any host, and that every host's own graph exceeds."""


@pytest.mark.parametrize(
    ("name", "step", "check", "outcome", "code"),
    [
        ("too_few_jpegs", "baseline", "jpeg_dataset", Outcome.FAILED, "jpeg.too_few"),
        ("decodes_on_the_cpu", "pipeline", "cuda_batch", Outcome.FAILED, "batch.not_cuda"),
        ("batch_of_eight", "pipeline", "cuda_batch", Outcome.FAILED, "batch.too_small"),
        ("slow_pipeline", "benchmark", "throughput_ratio", Outcome.FAILED, "ratio.too_low"),
        ("vague_reflections", "reflection", "reflections", Outcome.FAILED, "reflections.not_substantive"),
        ("sandbagged_baseline", "benchmark", "throughput_ratio", Outcome.FAILED, "ratio.too_low"),
        ("replayed_batches", "benchmark", "throughput_ratio", Outcome.FAILED, "ratio.replayed"),
        ("python_inside", "benchmark", "throughput_ratio", Outcome.UNVERIFIED, "ratio.not_carried"),
    ],
)
def test_each_failing_example_fails_for_its_reason(forked_runner, grade_with, name, step, check, outcome, code):
    """The verdict names the one thing that is wrong."""
    graded = grade_with(forked_runner, EXAMPLES / "failing" / f"{name}.py", [step], measurement=PLAN, threshold=HALF)
    result = check_of(graded, check)
    assert (result.outcome, result.code) == (outcome, code), result.feedback
