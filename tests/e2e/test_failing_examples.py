"""Each failing example of the lab, graded as a whole."""

import pytest

from grader_service.model.verdict import Outcome
from tests.corpus.parts import SLOW
from tests.e2e.conftest import EXAMPLES, PLAN, check_of

BETWEEN = 0.7
"""A ratio that what is slow here is far from, on any host, and that a host's own graph exceeds."""
LONGER = PLAN | {"looks": (3, 6)}
"""Where three blocks differ too much, three more decide."""


@pytest.mark.parametrize(
    ("name", "step", "check", "outcome", "code"),
    [
        ("too_few_jpegs", "baseline", "jpeg_dataset", Outcome.FAILED, "jpeg.too_few"),
        ("decodes_on_the_cpu", "pipeline", "cuda_batch", Outcome.FAILED, "batch.not_cuda"),
        ("batch_of_eight", "pipeline", "cuda_batch", Outcome.FAILED, "batch.too_small"),
        ("vague_reflections", "reflection", "reflections", Outcome.FAILED, "reflections.not_substantive"),
        ("replayed_batches", "benchmark", "throughput_ratio", Outcome.FAILED, "ratio.replayed"),
        ("python_inside", "benchmark", "throughput_ratio", Outcome.UNVERIFIED, "ratio.not_carried"),
    ],
)
def test_each_failing_example_fails_for_its_reason(forked_runner, grade_with, name, step, check, outcome, code):
    """The verdict names the one thing that is wrong."""
    graded = grade_with(forked_runner, EXAMPLES / "failing" / f"{name}.py", [step], measurement=PLAN, threshold=BETWEEN)
    result = check_of(graded, check)
    assert (result.outcome, result.code) == (outcome, code), result.feedback


SLOW_EXAMPLES = pytest.mark.parametrize("name", ["slow_pipeline", "sandbagged_baseline"])


def grade_slow(forked_runner, grade_with, source, plan):
    graded = grade_with(forked_runner, source, ["benchmark"], measurement=plan, threshold=BETWEEN)
    return check_of(graded, "throughput_ratio")


@pytest.mark.slow
@SLOW_EXAMPLES
def test_examples_that_are_too_slow_never_pass(forked_runner, grade_with, name):
    """On a host that others use their ratio may stay open, for such a host fails nobody; their pictures are smaller."""
    source = (EXAMPLES / "failing" / f"{name}.py").read_text()
    for size, smaller in (("(500, 375)", "(250, 188)"), ("(448, 448)", "(336, 336)")):
        assert size in source
        source = source.replace(size, smaller)
    result = grade_slow(forked_runner, grade_with, source, PLAN)
    assert result.code in SLOW, result.feedback


@pytest.mark.alone
@pytest.mark.slow
@SLOW_EXAMPLES
def test_alone_they_fail_by_their_ratio(forked_runner, grade_with, name):
    """As they are handed out."""
    result = grade_slow(forked_runner, grade_with, EXAMPLES / "failing" / f"{name}.py", LONGER)
    assert result.code == SLOW[0], result.feedback
