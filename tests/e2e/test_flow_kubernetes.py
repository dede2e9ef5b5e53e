"""Whole submissions through Jobs of a fake cluster: the same flow, the same verdicts as with Docker."""

import pytest

from grader_service.model.verdict import Status
from tests.e2e.conftest import ENDINGS, EXAMPLES, judged_ending

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_reference_passes(kubernetes_runner, kubernetes_cluster, grade_with):
    """Every pod of a grading works; the verdict names the sandbox, and nothing is left."""
    graded = grade_with(
        kubernetes_runner, EXAMPLES / "reference_submission.ipynb", measurement={"block_s": 0.3}, threshold=0.02
    )
    assert graded.verdict.status is Status.PASSED, graded.verdict
    assert graded.verdict.provenance.sandbox == "kubernetes"
    assert kubernetes_cluster.server.objects.find("pods") == []
    assert kubernetes_runner.sweep() == 0


@pytest.mark.parametrize(("code", "expected"), ENDINGS)
def test_a_pod_that_ends_without_a_word(kubernetes_runner, grade_with, code, expected):
    """Is the learner's failure for the reason that Docker gives, not a pod that the cluster took away."""
    verdict = judged_ending(grade_with, kubernetes_runner, code, expected)
    assert (verdict.status, verdict.code) == (Status.FAILED, expected)
