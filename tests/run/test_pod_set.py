"""The pods of a run, and for how long they had the GPU."""

import time

import pytest

from checks.registry import Registry
from grader_service.labs.catalogue import load_lab
from grader_service.model.evidence import Need
from grader_service.run.pod_set import PodSet
from sandbox.api import SpaceLimits
from sandbox.process.runner import ProcessRunner


@pytest.mark.parametrize(("device", "held"), [("cuda", True), ("cpu", False)])
def test_the_gpu_is_held_until_the_last_pod_that_has_it_ends(tmp_path, device, held):
    """The scanner has none, so it may live on; a rehearsal holds no GPU at all."""
    lab = load_lab("dali-pipelines", Registry())
    with ProcessRunner(tmp_path).open_run("pods", SpaceLimits(64, 1000, 64)) as space:
        pod_set = PodSet(space, lab, (Need.MEASUREMENT,), device, None)
        pod_set.start_others()
        since = time.monotonic()
        with_gpu = [pod for pod in pod_set.pods if pod.spec.gpu]
        assert len(with_gpu) == (3 if held else 0)
        for pod in with_gpu:
            time.sleep(0.1)
            pod.end()
        ended = time.monotonic() - since
        time.sleep(0.5)
        found = pod_set.gpu_held_s(since, [pod.end() for pod in pod_set.pods])
    if held:
        assert 0.3 <= found < ended + 0.4, "the pod without a GPU was 0.5 s longer there"
    else:
        assert found is None
