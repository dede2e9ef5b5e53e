"""Each failing example of the lab, graded as a whole."""

import pytest

from grader_service.model.verdict import Outcome
from tests.e2e.conftest import EXAMPLES, PLAN, check_of

BETWEEN = 0.7
"""A ratio that what is slow here is far from, on any host, and that a host's own graph exceeds."""
LONGER = PLAN | {"looks": (3, 6)}
"""Where three blocks differ too much, because others use this host, three more decide."""


def measured(name):
    """An example that is too slow: beside other tests a host may show that its own graph would be no faster."""
    found = (Outcome.FAILED, "ratio.too_low")
    return pytest.param(name, "benchmark", "throughput_ratio", *found, marks=pytest.mark.alone)


@pytest.mark.parametrize(
    ("name", "step", "check", "outcome", "code"),
    [
        ("too_few_jpegs", "baseline", "jpeg_dataset", Outcome.FAILED, "jpeg.too_few"),
        ("decodes_on_the_cpu", "pipeline", "cuda_batch", Outcome.FAILED, "batch.not_cuda"),
        ("batch_of_eight", "pipeline", "cuda_batch", Outcome.FAILED, "batch.too_small"),
        measured("slow_pipeline"),
        ("vague_reflections", "reflection", "reflections", Outcome.FAILED, "reflections.not_substantive"),
        measured("sandbagged_baseline"),
        ("replayed_batches", "benchmark", "throughput_ratio", Outcome.FAILED, "ratio.replayed"),
        ("python_inside", "benchmark", "throughput_ratio", Outcome.UNVERIFIED, "ratio.not_carried"),
    ],
)
def test_each_failing_example_fails_for_its_reason(forked_runner, grade_with, name, step, check, outcome, code):
    """The verdict names the one thing that is wrong."""
    graded = grade_with(
        forked_runner, EXAMPLES / "failing" / f"{name}.py", [step], measurement=LONGER, threshold=BETWEEN
    )
    result = check_of(graded, check)
    assert (result.outcome, result.code) == (outcome, code), result.feedback
