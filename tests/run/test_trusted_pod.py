"""A pod must have the GPU that its runner holds and watches, and be able to use it: the clean room is asked."""

import pytest

from grader_service.errors import SandboxUnavailable
from grader_service.host.facts import Gpu, Mig
from grader_service.run.trusted_pod import begin_gpu, require_gpu
from sandbox.api import Ending
from sandbox.frames import Message

UUID = "GPU-0a1b2c3d-0000-4000-8000-00000000000f"
HELD = Gpu(0, "NVIDIA H200", UUID, "580.1", 143_771)
INSTANCE = Gpu(0, "NVIDIA H200 MIG 1g.18gb", "MIG-1", "580.1", 16_384, Mig(UUID, "1g.18gb", 0, True, 1))
AS_CUDA_SAYS = UUID.removeprefix("GPU-")


class AnsweringPod:
    """Implements `sandbox.api.Pod` as far as one question and its answer go."""

    def __init__(self, answer):
        self._answer = answer
        self.sent = []

    def send(self, body, blob=b"", *, timeout_s=30.0):
        self.sent.append(body)

    def receive(self, timeout_s):
        return self._answer

    def reject(self, why):
        return Ending.PROTOCOL_VIOLATION

    def end(self):
        raise SandboxUnavailable("a pod of ours ended")


def pod(uuid, problem=None):
    return AnsweringPod(Message({"kind": "gpu", "uuid": uuid, "problem": problem}, b""))


@pytest.mark.parametrize(
    ("held", "given"),
    [(HELD, AS_CUDA_SAYS), (HELD, AS_CUDA_SAYS.upper()), (HELD, UUID), (HELD, None), (INSTANCE, "any")],
)
def test_the_gpu_that_is_held(held, given):
    """CUDA and NVML write its UUID differently; where CUDA has none to say, nothing is concluded."""
    asked = pod(given)
    begin_gpu(asked)
    assert asked.sent == [{"kind": "which_gpu"}]
    require_gpu(asked, held)
    assert len(asked.sent) == 1


def test_another_gpu():
    """Somebody else's work may run there: nothing is measured, and it is no doing of the learner's."""
    with pytest.raises(SandboxUnavailable, match=f"expected pods to have {UUID}.*they have ffff.*name-strategy"):
        require_gpu(pod("ffff" + AS_CUDA_SAYS[4:]), HELD)


def test_no_gpu():
    """A pod that lost it, or never had it: the learner's code saw the same, and is not blamed."""
    with pytest.raises(SandboxUnavailable, match=f"expected {UUID} to work in pods.*no CUDA-capable device.*doctor"):
        require_gpu(pod(None, "RuntimeError: no CUDA-capable device is detected"), HELD)


@pytest.mark.parametrize("answer", [Ending.TIMED_OUT, Message({"kind": "gpu"}, b""), Message({"kind": "mark"}, b"")])
def test_no_answer(answer):
    """A pod of ours that says something else, or nothing, is ours."""
    with pytest.raises(SandboxUnavailable):
        require_gpu(AnsweringPod(answer), HELD)
