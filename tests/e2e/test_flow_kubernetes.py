"""Whole submissions through Jobs of a fake cluster: the same flow, the same verdicts as with Docker."""

import pytest

from grader_service.model.verdict import Outcome, Status
from tests.e2e.conftest import EXAMPLES, check_of

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


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os\nos._exit(0)\n", "jpeg.exited"),
        (
            "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
            "jpeg.dataset_dir_missing",
        ),
        ("x = []\nwhile True: x.append(bytearray(1 << 24))\n", "jpeg.out_of_memory"),
    ],
    ids=["os._exit", "deaf loop", "memory"],
)
def test_a_pod_that_ends_without_a_word(kubernetes_runner, grade_with, code, expected):
    """Is the learner's failure for the reason that Docker gives, not a pod that the cluster took away."""
    # Filling the memory ends it; how long that takes is the machine's affair.
    limit_s = 60.0 if expected == "jpeg.out_of_memory" else 2.0
    graded = grade_with(kubernetes_runner, code, ["baseline"], learner_timeout_s=limit_s, memory_mib=512)
    assert (check_of(graded, "jpeg_dataset").outcome, check_of(graded, "jpeg_dataset").code) == (
        Outcome.FAILED,
        expected,
    )
